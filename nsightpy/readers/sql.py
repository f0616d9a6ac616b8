"""SQLAlchemy as `sa`, imported when the first statement is made.

The import takes 0.2 s, and a trace needs no statement.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlalchemy as sa
else:

    class _OnFirstUse:
        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module("sqlalchemy"), name)
            setattr(self, name, value)
            return value

    sa = _OnFirstUse()

__all__ = ["sa"]
