"""nsightpy api"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import common_of, common_options, show, top_option


@click.command("api")
@common_options
@top_option
def command(**options: Any) -> None:
    """Rank CUDA API functions by total host time, as `nsys stats --report cuda_api_sum` does."""
    from nsightpy.verbs.api import api

    show(api(options["reports"], top=options["top"], **common_of(options)), options)
