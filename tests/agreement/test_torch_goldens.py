"""Operators equal torch's own key_averages, to the nanosecond, on a trace of torch 2.14.

The trace and what torch says of it are goldens (scripts/make_torch_goldens.py). key_averages counts
an operator that calls nothing but one of its own name as one call, nsightpy as two: of those only
the time in the operators themselves is the same.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given, strategies as st

import nsightpy
from nsightpy.analysis.operators.device_time import with_callees

GOLDENS = Path(__file__).parent.parent / "goldens" / "torch"
TRACE = GOLDENS / "cpu_step.json.gz"
GOLDEN = json.loads((GOLDENS / "cpu_step_averages.json").read_text(encoding="utf-8"))


def test_operators_by_shape_are_those_of_torch() -> None:
    rows = nsightpy.operators([TRACE], by=["shape"], use_cache=False).records()
    found = {
        (row["operator"], row["shape"] or "[]"): (
            row["calls"],
            row["host_self_ns"],
            row["host_total_ns"],
        )
        for row in rows
        if row["operator"] not in GOLDEN["duplicates"]
    }
    wanted = {
        (name, json.dumps(shapes)): (calls, alone, total)
        for name, shapes, calls, alone, total in GOLDEN["averages"]
        if name not in GOLDEN["duplicates"]
    }
    assert len(wanted) > 50
    assert found == wanted


def test_time_in_the_operators_themselves_is_that_of_torch() -> None:
    rows = nsightpy.operators([TRACE], use_cache=False).records()
    wanted: Counter[str] = Counter()
    for name, _, _, alone, _ in GOLDEN["averages"]:
        wanted[name] += alone
    assert {row["operator"]: row["host_self_ns"] for row in rows} == wanted


def test_allocations_end_with_what_the_trace_says_is_live() -> None:
    usage = nsightpy.open_report(TRACE, use_cache=False).frame("memory_usage")
    frees = usage.labels("operation").equals(["free"])
    assert usage.rows > 400
    assert 0 < int(frees.sum()) < usage.rows
    assert set(usage.labels("memory")) == {"CPU"}


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9))))
def test_an_operator_has_the_device_time_of_those_below_it(rows: list[tuple[int, int]]) -> None:
    parent = [chosen % (row + 1) - 1 for row, (chosen, _) in enumerate(rows)]
    depth, total = list[int](), [time for _, time in rows]
    for row, (_, time) in enumerate(rows):
        depth.append(0 if parent[row] < 0 else depth[parent[row]] + 1)
        caller = parent[row]
        while caller >= 0:
            total[caller] += time
            caller = parent[caller]
    own = (np.asarray(one, dtype=np.int64) for one in ([time for _, time in rows], parent, depth))
    assert with_callees(*own).tolist() == total
