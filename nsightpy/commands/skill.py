"""skill: how to go from a report to a conclusion, for agents."""

from __future__ import annotations

from importlib.resources import files


def skill() -> str:
    """The text of SKILL.md: which command answers what, and what must not be concluded."""
    return files("nsightpy").joinpath("SKILL.md").read_text(encoding="utf-8")
