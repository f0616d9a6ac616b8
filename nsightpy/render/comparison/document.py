"""A comparison as JSON: the rows of every command, and in it what the rows do not say."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from nsightpy.render.formats import finite, to_json
from nsightpy.results.comparison import ComparedQuantity, Comparison


def comparison_json(result: Comparison) -> bytes:
    """The versioned document: rows, and unit, circumstances, limits, gate, noise, matching."""
    more = {
        "unit": result.unit,
        "spread": result.spread,
        "limits": asdict(result.limits),
        "circumstances": [asdict(one) for one in result.circumstances],
        "gate": None if result.gate is None else asdict(result.gate),
        "noise": None if result.noise is None else asdict(result.noise),
        "runs_needed": result.step.runs_needed,
        "details": [_details(one) for one in result.quantities],
        "next_steps": [{"command": command, "why": why} for command, why in result.next_steps],
    }
    document = {**json.loads(to_json(result)), **finite(more)}
    return f"{json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)}\n".encode()


def _details(one: ComparedQuantity) -> dict[str, Any]:
    """What a row has no column for, in the order of the rows."""
    return {
        "name": one.name,
        "section": one.section,
        "before_runs_ns": one.before_runs,
        "after_runs_ns": one.after_runs,
        "before_count": one.before_count,
        "after_count": one.after_count,
        "delta_from_count_ns": one.delta_from_count_ns,
        "delta_from_duration_ns": one.delta_from_duration_ns,
        "change": one.change,
        "before_names": one.before_names,
        "after_names": one.after_names,
        "figures": [
            {"name": name, "before": before, "after": after} for name, before, after in one.figures
        ],
    }
