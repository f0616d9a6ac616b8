"""One side of a comparison as a baseline file: small, and of a form whose changes can be reviewed.

No file names and no notes: both may name hosts and users.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

import msgspec

from nsightpy.output.formats import encodable
from nsightpy.results.run_summary import Baseline, RunSummary, UnitSummary

_json = msgspec.json.encode


def baseline_bytes(runs: Sequence[RunSummary]) -> bytes:
    """The runs as JSON, each kernel, collective and range on a line of its own."""
    lines = []
    for number, run in enumerate(runs, 1):
        units = []
        for name, unit in run.units.items():
            works = (replace(work, name=encodable(work.name)) for work in unit.works)
            units.append(_json(name) + b":" + _object(unit, works=_list(map(_json, works))))
        bare = replace(run, name=f"run {number}", notes=())
        lines.append(_object(bare, units=b"{" + b",\n".join(units) + b"}"))
    return _object(Baseline(), runs=_list(lines)) + b"\n"


def _object(value: Baseline | RunSummary | UnitSummary, **encoded: bytes) -> bytes:
    """A dataclass as JSON, with these fields as they are encoded already."""
    every = {field.name: getattr(value, field.name) for field in fields(value)}
    return _json(every | {name: msgspec.Raw(text) for name, text in encoded.items()})


def _list(lines: Iterable[bytes]) -> bytes:
    return b"[\n" + b",\n".join(lines) + b"\n]"
