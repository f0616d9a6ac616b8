"""One side of a comparison as a baseline file: of a form whose changes can be reviewed.

No file names and no notes: both may name hosts and users.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from nsightpy.output.formats import encodable
from nsightpy.results.run_summary import Baseline, RunSummary, UnitSummary


def baseline_bytes(runs: Sequence[RunSummary]) -> bytes:
    """The runs as JSON, each value on a line of its own."""

    def bare(unit: UnitSummary) -> UnitSummary:
        works = (replace(work, name=encodable(work.name)) for work in unit.works)
        return replace(unit, works=tuple(works))

    kept = tuple(
        replace(
            run,
            name=f"run {number}",
            notes=(),
            units={name: bare(unit) for name, unit in run.units.items()},
        )
        for number, run in enumerate(runs, 1)
    )
    encoded = msgspec.json.encode(replace(Baseline(), runs=kept))
    return msgspec.json.format(encoded, indent=1) + b"\n"
