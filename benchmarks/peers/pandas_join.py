"""The kernel ranking as a user of pandas would write it: one JOIN over all rows, then groupby."""

import sys
from pathlib import Path

import pandas as pd
from sqlalchemy import create_engine

QUERY = """
SELECT k."end" - k.start AS duration, s.value AS name
FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
JOIN StringIds AS s ON s.id = k.demangledName
"""

engine = create_engine(f"sqlite:///file:{Path(sys.argv[1]).resolve()}?mode=ro&uri=true")
durations = pd.read_sql(QUERY, engine).groupby("name")["duration"]
table = durations.agg(["sum", "count", "mean", "median", "min", "max", "std"])
table.insert(0, "percent", 100 * table["sum"] / table["sum"].sum())
print(table.sort_values("sum", ascending=False).head(20).to_string())
