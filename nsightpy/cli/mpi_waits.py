"""nsightpy mpi-waits"""

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command("mpi-waits", top_option)
def command() -> None:
    """Rank where MPI ranks waited for each other: state, function, NVTX range, and for whom.

    late sender, late receiver, wait at barrier, wait at n-to-n, late broadcast, early reduce.
    gpu_idle_ns is the time in these waits in which the rank's GPU did nothing.
    """
