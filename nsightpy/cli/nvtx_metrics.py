"""nsightpy nvtx-metrics"""

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command("nvtx-metrics", top_option)
def command() -> None:
    """Show the GPU metrics that nsys sampled while what each NVTX range launched was running.

    Needs a capture with --gpu-metrics-devices. The whole capture comes first, then the ranges with
    most projected time, 20 without --top; samples says on how many a figure rests.
    """
