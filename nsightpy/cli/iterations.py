"""nsightpy iterations"""

from nsightpy.cli.options import communication_option, top_option
from nsightpy.cli.table_command import table_command


@table_command("iterations", communication_option, top_option, plot="iterations_plot")
def command() -> None:
    """Find the iterations of a run, and divide the time of each.

    They are the instances of the range that --nvtx names, else of ranges that are called steps or
    hold the work, else a repeated collective or kernel sequence; not layers, not single launches.
    The source is named, and what else repeats. Warm-up and what the profiler cut off are no
    part of the steady state. -o FILE.png, .svg or .pdf draws them.
    """
