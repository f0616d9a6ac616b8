"""nsightpy gaps"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, communication_option, show, top_option


@click.command("gaps")
@common_options
@communication_option
@top_option
def command(**options: Any) -> None:
    """List the longest intervals in which a device did nothing, longest first: 20, or --top N.

    cause is the id of the finding that most of the interval counts for. host_activity says what
    the thread did that launched the next operation: CUDA calls, NVTX ranges, OS and MPI calls,
    CPU samples. before and after are the operations around the interval.
    """
    from nsightpy.commands.gaps import gaps

    show(asked(gaps, options), options)
