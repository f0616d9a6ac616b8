"""nsightpy launch-queues"""

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command("launch-queues", top_option, plot="queue_plot")
def command() -> None:
    """Show how much work waited on each stream, and where launching set the pace.

    An operation waits from the begin of its launch call until it begins to run. launch_bound: at
    least 20 kernels in a row ran shorter than their launch calls, the host never pausing.
    -o FILE.png, .svg or .pdf draws the queues over time.
    """
