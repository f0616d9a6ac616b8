"""The kernel ranking as a user of pandas would write it: one JOIN over all rows, then groupby."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from sqlalchemy import create_engine

QUERY = """
SELECT k."end" - k.start AS duration, s.value AS name
FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
JOIN StringIds AS s ON s.id = k.demangledName
"""


def main() -> None:
    path = Path(sys.argv[1]).resolve()
    engine = create_engine(f"sqlite:///file:{path}?mode=ro&uri=true")
    kernels = pd.read_sql(QUERY, engine)
    table = kernels.groupby("name")["duration"].agg(
        ["sum", "count", "mean", "median", "min", "max", "std"]
    )
    table.insert(0, "percent", 100 * table["sum"] / table["sum"].sum())
    print(table.sort_values("sum", ascending=False).head(20).to_string())


if __name__ == "__main__":
    main()
