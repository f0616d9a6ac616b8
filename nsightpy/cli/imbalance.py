"""nsightpy imbalance"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import (
    asked,
    common_options,
    communication_option,
    name_option,
    show,
    top_option,
)


@click.command("imbalance")
@common_options
@communication_option
@name_option
@top_option
def command(**options: Any) -> None:
    """Compare the time of every kernel between the ranks that do the same work.

    max_over_mean is the slowest rank's time over the mean. Communication kernels are left out:
    their time holds waiting, which `ranks` and `collectives` separate.
    """
    from nsightpy.commands.imbalance import imbalance

    show(asked(imbalance, options), options)
