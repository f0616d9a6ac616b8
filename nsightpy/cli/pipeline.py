"""nsightpy pipeline"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, communication_option, show, top_option


@click.command("pipeline")
@common_options
@communication_option
@top_option
def command(**options: Any) -> None:
    """Divide the time of each pipeline stage: compute, bubbles, transfers, idle.

    Stages are chains of ranks that hand each other data by NCCL's Send and Recv. A bubble is time
    in which a rank waits for its neighbour and its device does nothing else. --iteration steady
    leaves the first iterations out.
    """
    from nsightpy.commands.pipeline import pipeline

    show(asked(pipeline, options), options)
