"""One side of a comparison as a baseline file: small, and of a form whose changes can be reviewed.

No file names and no notes: both may name hosts and users.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

import msgspec

from nsightpy.output.formats import encodable
from nsightpy.results.run_summary import Baseline, RunSummary, UnitSummary, WorkSummary


def baseline_bytes(runs: Sequence[RunSummary]) -> bytes:
    """The runs as JSON, each kernel, collective and range on a line of its own."""
    bare = (replace(run, name=f"run {place}", notes=()) for place, run in enumerate(runs, 1))
    lines = _list(_object(run, units=_units(run)) for run in bare)
    return _object(Baseline(), runs=lines) + b"\n"


def _units(run: RunSummary) -> bytes:
    units = (_json(name) + b":" + _unit(unit) for name, unit in run.units.items())
    return b"{" + b",\n".join(units) + b"}"


def _unit(unit: UnitSummary) -> bytes:
    return _object(unit, works=_list(map(_work, unit.works)))


def _work(work: WorkSummary) -> bytes:
    return _json(replace(work, name=encodable(work.name)))


def _object(value: Baseline | RunSummary | UnitSummary, **encoded: bytes) -> bytes:
    """A dataclass as JSON, with these fields as they are encoded already."""
    every = {field.name: getattr(value, field.name) for field in fields(value)}
    return _json(every | {name: msgspec.Raw(text) for name, text in encoded.items()})


def _list(lines: Iterable[bytes]) -> bytes:
    return b"[\n" + b",\n".join(lines) + b"\n]"


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)
