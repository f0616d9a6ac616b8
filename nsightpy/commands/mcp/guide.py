"""The guide for agents."""

from importlib.resources import files


def guide() -> str:
    """SKILL.md: which command answers what, and what must not be concluded."""
    return files("nsightpy").joinpath("SKILL.md").read_text(encoding="utf-8")
