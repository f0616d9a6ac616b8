"""What users of the library see of a report: its frames as DataFrames, its facts in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nsightpy.frames import Schema

if TYPE_CHECKING:
    import pandas as pd


class DataFrameOf(property):
    """A frame of a report as a property: a pandas DataFrame with the columns of its schema."""

    def __init__(self, schema: Schema) -> None:
        def read(report: Any) -> Any:
            return report.frame(schema.name).to_pandas()

        meaning = f"{schema.meaning[:1].upper()}{schema.meaning[1:]}"
        read.__doc__ = f"{meaning} (schema: frames.{schema.name.upper()})."
        super().__init__(read)

    if TYPE_CHECKING:

        def __get__(  # type: ignore[override]
            self, report: Any, owner: type | None = None, /
        ) -> pd.DataFrame: ...


def facts_table(facts: Mapping[str, str]) -> str:
    """Names and values as an HTML table, without those that are empty; all text is escaped."""
    import html

    cells = "".join(
        f"<tr><th>{html.escape(key)}</th><td>{html.escape(value)}</td></tr>"
        for key, value in facts.items()
        if value
    )
    return f"<table>{cells}</table>"
