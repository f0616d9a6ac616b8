"""nsightpy inference-steps"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show, top_option


@click.command("inference-steps")
@common_options
@top_option
def command(**options: Any) -> None:
    """Steps of vLLM and SGLang as they annotate them: tokens, host time, GPU time, launches."""
    from nsightpy.commands.inference_steps import inference_steps

    show(asked(inference_steps, options), options)
