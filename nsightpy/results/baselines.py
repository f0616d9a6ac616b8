"""A baseline: what the runs of one side took, as a file that stays readable.

The version counts up whenever what an older nsightpy would make of a file would be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from nsightpy.results.run_summary import PARTS, RunSummary

BASELINE_SCHEMA = "nsightpy.baseline/1"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The runs, and the names of the parts that their units divide into."""

    schema: str = BASELINE_SCHEMA
    parts: tuple[str, ...] = PARTS
    runs: tuple[RunSummary, ...] = ()
