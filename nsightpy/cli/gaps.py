"""nsightpy gaps"""

from nsightpy.cli.options import communication_option, top_option
from nsightpy.cli.table_command import table_command


@table_command("gaps", communication_option, top_option)
def command() -> None:
    """List the longest intervals in which a device did nothing, longest first: 20, or --top N.

    cause is the id of the finding that most of the interval counts for. host_activity says what
    the thread did that launched the next operation: CUDA calls, NVTX ranges, OS and MPI calls,
    CPU samples. before and after are the operations around the interval.
    """
