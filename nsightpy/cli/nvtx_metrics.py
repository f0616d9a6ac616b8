"""nsightpy nvtx-metrics"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show, top_option


@click.command("nvtx-metrics")
@common_options
@top_option
def command(**options: Any) -> None:
    """Show the GPU metrics that nsys sampled while what each NVTX range launched was running.

    Needs a capture with --gpu-metrics-devices. The whole capture comes first, then the ranges with
    most projected time, 20 without --top; samples says on how many a figure rests.
    """
    from nsightpy.commands.nvtx_metrics import nvtx_metrics

    show(asked(nvtx_metrics, options), options)
