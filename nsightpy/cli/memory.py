"""nsightpy memory"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import common_of, common_options, show, top_option


@click.command("memory")
@common_options
@top_option
def command(**options: Any) -> None:
    """Rank copies and memory sets by time, with sizes and throughput.

    Figures are those of `nsys stats` cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum;
    MB is 10^6 bytes.
    """
    from nsightpy.verbs.memory import memory

    show(memory(options["reports"], top=options["top"], **common_of(options)), options)
