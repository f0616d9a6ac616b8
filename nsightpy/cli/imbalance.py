"""nsightpy imbalance"""

from nsightpy.cli.options import communication_option, name_option, top_option
from nsightpy.cli.table_command import table_command


@table_command("imbalance", communication_option, name_option, top_option)
def command() -> None:
    """Compare the time of every kernel between the ranks that do the same work.

    max_over_mean is the slowest rank's time over the mean. Communication kernels are left out:
    their time holds waiting, which `ranks` and `collectives` separate.
    """
