"""Frames made by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nsightpy.frames import Frame, Labels

TEXTS = {
    *("name", "operation", "source_memory", "target_memory", "kind", "report", "module"),
    *("domain", "style", "label"),
}


def frame(names: str | Sequence[str], rows: Sequence[Sequence[Any]], **same: Any) -> Frame:
    """A frame of these columns, of whole numbers but for those of TEXTS; `same` is of all rows."""
    columns: dict[str, Sequence[Any]] = {
        name: [row[place] for row in rows]
        for place, name in enumerate(names.split() if isinstance(names, str) else names)
    }
    columns |= {name: [value] * len(rows) for name, value in same.items()}
    return Frame(
        {
            name: Labels.of(values) if name in TEXTS else np.asarray(values, dtype=np.int64)
            for name, values in columns.items()
        }
    )
