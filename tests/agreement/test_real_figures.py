"""The figures of every command on every real export, recomputed by plain SQL and a sweep."""

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest
from simulator.truth import COMMUNICATION, COMPUTE, GRAPH, MEMORY, budget

from tests.support.reports import (
    SPLITS,
    ask,
    exports,
    rows_of,
    select,
    tables,
)

pytestmark = pytest.mark.slow

KIND = "CUPTI_ACTIVITY_KIND_"
BUDGET = (
    *("window_ns", "busy_ns", "compute_ns", "communication_ns", "memory_ns", "overlap_ns"),
    *("exposed_communication_ns", "copy_only_ns", "opaque_graph_ns", "idle_ns"),
)
# By copyKind; the last is no copy.
COPIES = (
    *("Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host"),
    *("Array-to-Array", "Array-to-Device", "Device-to-Array", "Device-to-Device"),
    *("Host-to-Host", "Peer-to-Peer"),
)
OPERATIONS = [*(f"[CUDA memcpy {kind}]" for kind in COPIES), "[CUDA memset]"]


@cache
def rows(path: Path, *request: str) -> list[dict[str, Any]]:
    return rows_of(*request, path)


def totals(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    """Names with all their durations, largest total first, then by name."""
    found: dict[str, list[int]] = defaultdict(list)
    for name, value in pairs:
        found[name].append(value)
    return sorted(found.items(), key=lambda item: (-sum(item[1]), item[0]))


def check_ranking(mine: list[dict[str, Any]], theirs: list[tuple[str, list[int]]]) -> None:
    names = "Operation" if mine and "Operation" in mine[0] else "Name"
    assert [row[names] for row in mine] == [name for name, _ in theirs]
    whole = sum(sum(values) for _, values in theirs)
    for row, (_, values) in zip(mine, theirs, strict=True):
        exactly, total = np.asarray(values, np.longdouble), sum(values)
        spread = float(exactly.std(ddof=1)) if len(values) > 1 else 0.0
        shown = [*list(row.values())[1:3], row["Min (ns)"], row["Max (ns)"]]
        assert shown == [total, len(values), min(values), max(values)]
        near = (float(exactly.mean()), median(values), spread, 100 * total / whole)
        shown = [row[name] for name in ("Avg (ns)", "Med (ns)", "StdDev (ns)", "Time (%)")]
        assert shown == pytest.approx(near, rel=0, abs=0.0501)


def named(path: Path, table: str, name: str, more: str = "") -> list[tuple[str, int]]:
    """Name and length of every row of a table of CUPTI; nothing where there is none."""
    if f"{KIND}{table}" not in tables(path):
        return []
    sql = f'SELECT s.value, t."end" - t.start FROM {KIND}{table} t LEFT JOIN StringIds s ON s.id = '
    return select(path, f"{sql} t.{name} {more}")


@exports
def test_kernels_are_what_sql_says(path: Path) -> None:
    for name, style in (("demangledName", "demangled"), ("shortName", "base")):
        theirs = totals(named(path, "KERNEL", name))
        check_ranking(rows(path, "kernels", "--name", style), theirs)


@exports
def test_splits_share_the_same_total(path: Path) -> None:
    whole = totals(named(path, "KERNEL", "demangledName"))
    for split in (*SPLITS, ",".join(SPLITS)):
        split_rows = rows(path, "kernels", "--by", split)
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for row in split_rows:
            found[row["Name"]][0] += row["Total Time (ns)"]
            found[row["Name"]][1] += row["Instances"]
        assert found == {name: [sum(values), len(values)] for name, values in whole}
        keys = [tuple(row[name] for name in (*split.split(","), "Name")) for row in split_rows]
        assert len(set(keys)) == len(keys)


@exports
def test_api_calls_are_what_sql_says(path: Path) -> None:
    theirs = named(path, "RUNTIME", "nameId", "WHERE t.eventClass <> 67")
    plain = totals((re.sub(r"_v\d{4}$", "", name), value) for name, value in theirs)
    check_ranking(rows(path, "api"), plain)


@exports
def test_memory_operations_are_what_sql_says(path: Path) -> None:
    found: list[tuple[str, int, int]] = []
    for table, kind in (("MEMCPY", "copyKind"), ("MEMSET", "-1")):
        if f"{KIND}{table}" in tables(path):
            found += select(path, f'SELECT {kind}, "end" - start, bytes FROM {KIND}{table}')
    found = [(OPERATIONS[int(kind)], ns, size) for kind, ns, size in found]
    fastest = max(
        (
            speed
            for table in tables(path) & {"TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"}
            if "memoryBandwidth" in {row[1] for row in select(path, f"PRAGMA table_info({table})")}
            for (speed,) in select(path, f"SELECT memoryBandwidth FROM {table}")
        ),
        default=0,
    )
    mine = rows(path, "memory")
    check_ranking(mine, totals((name, ns) for name, ns, _ in found))
    sizes = dict(totals((name, size) for name, _, size in found))
    for row in mine:
        values = sizes[row["Operation"]]
        exact = (sum(values), fmean(values), median(values), min(values), max(values))
        shown = [row[f"{word} (MB)"] for word in ("Total", "Avg", "Med", "Min", "Max")]
        assert shown == pytest.approx([value / 1e6 for value in exact], rel=0, abs=0.000501)
        speed = sum(values) / row["Total Time (ns)"]
        if fastest and speed * 1e9 > fastest:
            assert row["throughput_gb_per_s"] is None, "faster than the memory itself"
            continue
        assert row["throughput_gb_per_s"] == pytest.approx(speed, abs=0.000501)


@exports
def test_launches_are_joined_by_process_and_correlation(path: Path) -> None:
    kernels: list[tuple[int, int]] = []
    calls: set[tuple[int, int]] = set()
    if {f"{KIND}KERNEL", f"{KIND}RUNTIME"} <= tables(path):
        kernels = select(path, f"SELECT globalPid >> 24, correlationId FROM {KIND}KERNEL")
        launches = f"SELECT globalTid >> 24, correlationId FROM {KIND}RUNTIME"
        calls = set(select(path, f"{launches} WHERE eventClass IN (0, 1)"))
    joined = sum(kernel in calls for kernel in kernels)
    assert sum(row["count"] for row in rows(path, "launches")) == joined


def events(path: Path) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
    """(start, end, class) of all GPU work by process and device."""
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    classes = {"MEMCPY": MEMORY, "MEMSET": MEMORY, "GRAPH_TRACE": GRAPH, "KERNEL": COMPUTE}
    for name, kind in classes.items():
        if f"{KIND}{name}" not in tables(path):
            continue
        label, join = "''", ""
        if kind == COMPUTE:
            label, join = "s.value", "LEFT JOIN StringIds s ON s.id = e.demangledName"
        sql = f'SELECT globalPid >> 24 & 0xFFFFFF, deviceId, start, "end", {label}'
        for pid, device, start, end, text in select(path, f"{sql} FROM {KIND}{name} e {join}"):
            talks = text.removeprefix("void ").startswith("nccl")
            found[pid, device].append((start, end, COMMUNICATION if talks else kind))
    return found


@exports
def test_breakdown_is_what_a_sweep_over_the_events_says(path: Path) -> None:
    theirs = []
    for (_, device), mine in events(path).items():
        counted = budget(mine)
        theirs.append((device, *(counted[name] for name in BUDGET)))
    found = [(row["device"], *(row[name] for name in BUDGET)) for row in rows(path, "breakdown")]
    assert sorted(found) == sorted(theirs)


@exports
def test_summary_repeats_the_figures_of_the_commands(path: Path) -> None:
    document = ask("summarize", path, "--format", "json").json
    steady = ("--iteration", "steady") if document["header"]["steady"] else ()
    budgets = rows_of("breakdown", path, *steady)
    for mine, theirs in zip(document["breakdown"], budgets, strict=True):
        assert mine.items() >= {name: theirs[name] for name in ("rank", "device", *BUDGET)}.items()
    for command in ("kernels", "memory"):
        listed = rows_of(command, path, *steady)
        assert document[command] == listed[: len(document[command])]
        assert len(document[command]) == min(len(listed), 5 if command == "kernels" else 99)
    (info,) = rows(path, "info")
    names = ("gpu", "devices", "processes", "tool_version", "duration_ns", "kernels")
    assert document["header"].items() >= {name: info[name] for name in names}.items()
    assert document["header"]["kernels"] == len(named(path, "KERNEL", "shortName"))
