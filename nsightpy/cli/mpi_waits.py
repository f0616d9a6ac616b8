"""nsightpy mpi-waits"""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import asked, common_options, show, top_option


@click.command("mpi-waits")
@common_options
@top_option
def command(**options: Any) -> None:
    """Rank where MPI ranks waited for each other: state, function, NVTX range, and for whom.

    late sender, late receiver, wait at barrier, wait at n-to-n, late broadcast, early reduce.
    gpu_idle_ns is the time in these waits in which the rank's GPU did nothing.
    """
    from nsightpy.commands.mpi_waits import mpi_waits

    show(asked(mpi_waits, options), options)
