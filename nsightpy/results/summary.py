"""Summaries: sections by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nsightpy.results.abstention import Abstention
from nsightpy.results.findings import Finding, findings_table
from nsightpy.results.listing import Value
from nsightpy.results.tables import Table, abstentions_in

# Sections are added at the end of the document.
ADDED_SECTIONS = ("idle", "gaps")


@dataclass(frozen=True)
class Summary:
    """One screen about one or more reports: sections by name."""

    inputs: tuple[str, ...]
    header: Mapping[str, Value]
    sections: Mapping[str, Table]
    findings: tuple[Finding, ...]
    next_steps: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    @property
    def abstentions(self) -> tuple[Abstention, ...]:
        """Those of the notes that say what could not be answered."""
        return abstentions_in(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """The sections by name, as plain JSON values."""
        every = {name: list(table.keyed()) for name, table in self.sections.items()}
        later = {name: every.pop(name) for name in ADDED_SECTIONS if name in every}
        return {
            "header": dict(self.header),
            **every,
            "findings": list(findings_table(self.findings).keyed()),
            "next_steps": [{"command": command, "why": why} for command, why in self.next_steps],
            **later,
        }
