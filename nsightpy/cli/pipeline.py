"""nsightpy pipeline"""

from nsightpy.cli.options import communication_option, top_option
from nsightpy.cli.table_command import table_command


@table_command("pipeline", communication_option, top_option)
def command() -> None:
    """Divide the time of each pipeline stage: compute, bubbles, transfers, idle.

    Stages are chains of ranks that hand each other data by NCCL's Send and Recv. A bubble is time
    in which a rank waits for its neighbour and its device does nothing else. --iteration steady
    leaves the first iterations out.
    """
