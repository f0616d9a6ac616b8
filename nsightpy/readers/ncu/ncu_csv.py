"""Read what `ncu --csv` printed: raw (wide) and details (long) pages, ncu 2020 to 2026.

Before, between and after the rows may stand ==PROF== lines, output of the program and more than
one header; only rows whose first cell is a number count. Labels become metric names, units base
units.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import TypeAlias

from nsightpy.errors import ReportError
from nsightpy.frames import METRICS, RULES, Frame
from nsightpy.readers.ncu.printed import MISSING, base_unit, is_german, metric_of, number
from nsightpy.readers.ncu.tables import (
    Launch,
    Metric,
    NcuTables,
    Rule,
    launches_frame,
    nvtx_text,
    stable_unit,
)
from nsightpy.readers.tools.file_check import file_errors, size_of_regular

# The header of a page, and its rows.
_Page: TypeAlias = tuple[list[str], list[list[str]]]
HEADER = re.compile(r'"?ID"?,"?Process ID"?,')
SUMMARY = re.compile(r'"?Process ID"?,"?Process Name"?,')
_ROW = re.compile(r'"?\d{1,9}"?,')
_NUMBERED = re.compile(r"[0-9]*").fullmatch
_MOST_LINES_OF_A_ROW = 50
LONGEST_WHOLE = 18
_TUPLE = re.compile(r"\(\s*(\d{1,10}),\s*(\d{1,10}),\s*(\d{1,10})\s*\)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_RANGE = re.compile(r"(.*):[^:]*:[^:]*:[^:]*:[^:]*:[^:]*:\1")
_ROUNDED = re.compile(r"-?[\d,]*\d\.\d\d")
_PUSH_POP = "thread Domain:Push/Pop_Range"
_START_STOP = "Id:Domain:Start/Stop_Range"
_ABOUT = {"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time"}
_ABOUT |= {"Context", "Stream", "Block Size", "Grid Size", "Device", "CC", "Estimated Speedup"}
_TYPES = {"INF": "ok", "OPT": "optimization", "WRN": "warning", "ERR": "error"}
_RAW = "print it with `ncu --import REPORT --csv --page raw`."
_TWO_DECIMALS = (
    "ncu printed these numbers with two decimals; a .ncu-rep has all of them. Rates per cycle that "
    "were rounded to 0.00 are left out."
)
_PERMISSION = (
    "the driver did not let ncu read the counters (ERR_NVGPUCTRPERM): profile as an administrator, "
    "or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0."
)


def looks_like_csv(start: bytes) -> bool:
    """Whether the header of an `ncu --csv` page stands in the beginning of a file."""
    return any(HEADER.match(line) or SUMMARY.match(line) for line in _decoded(start).splitlines())


def read(path: Path) -> NcuTables:
    """The frames of a CSV file. Raises ReportError for what is no such page, or an empty one."""
    with file_errors(path):
        size_of_regular(path)
        data = path.read_bytes()
    if not data:
        raise ReportError(path, "is empty", _RAW)
    return parse(path, _decoded(data))


def parse(path: Path, text: str) -> NcuTables:
    """The frames of the text of a page; `path` is for the messages."""
    try:
        pages = _pages(text)
    except csv.Error as error:
        raise ReportError(path, f"has a line that is no CSV: {error}", _RAW) from error
    if not any(rows for _, rows in pages):
        raise _nothing(path, text)
    # a row begins with a result's number, or with nothing, as that of the units does
    if not all(_NUMBERED(row[0]) for _, rows in pages for row in rows):
        raise ReportError(path, "is damaged: a quote is missing", _RAW)
    reader = _Reader(is_german(_commas(pages)))
    for header, rows in pages:
        reader.read(header, rows)
    launches = [reader.launches[number] for number in sorted(reader.launches)]
    metrics = list(reader.metrics.values())
    return NcuTables(
        launches_frame(launches, metrics),
        Frame.of_rows(METRICS, metrics),
        Frame.of_rows(RULES, reader.rules),
        notes=(_TWO_DECIMALS,) if reader.rounded == {True} else (),
    )


def _decoded(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _pages(text: str) -> list[_Page]:
    """Each header with the rows after it, the units row of a wide page first."""
    lines = iter(text.splitlines())
    pages: list[_Page] = []
    for line in lines:
        if HEADER.match(line):
            pages.append((next(csv.reader([line])), []))
        elif pages and (_ROW.match(line) or (not pages[-1][1] and line.startswith(('"",', ",")))):
            pages[-1][1].append(next(csv.reader([_completed(line, lines)])))
    return pages


def _completed(line: str, lines: Iterator[str]) -> str:
    """The line, with those that follow while a quoted cell is open."""
    for _ in range(_MOST_LINES_OF_A_ROW):
        if line.count('"') % 2 == 0:
            break
        line = f"{line} {next(lines, '')}"
    return line


def _commas(pages: Iterable[_Page]) -> Iterator[str]:
    """The cells whose commas or points could be either decimals or grouping."""
    for header, rows in pages:
        for row in rows:
            for name, cell in zip(header, row):  # noqa: B905
                if name not in _ABOUT and ("," in cell or cell.count(".") > 1):
                    yield cell


def _nothing(path: Path, text: str) -> ReportError:
    """Why a file has no results."""
    if "ERR_NVGPUCTRPERM" in text:
        return ReportError(path, "has no results", _PERMISSION)
    problem = 'holds no `ncu --csv` page of launches: no row after "ID","Process ID",...'
    return ReportError(path, problem, _RAW)


class _Reader:
    """Collects the results of all pages of a file."""

    def __init__(self, german: bool) -> None:
        self.launches: dict[int, Launch] = {}
        self.metrics: dict[tuple[int, str], Metric] = {}
        self.rules: list[Rule] = []
        self.rounded: set[bool] = set()
        self._german = german

    def read(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """One page; results that are numbered as earlier ones get numbers of their own."""
        again = any(int(cells[0]) in self.launches for cells in rows if cells[0])
        first = max(self.launches) + 1 if again else 0
        beside = (_PUSH_POP, _START_STOP)
        names = [name for name in header if name not in _ABOUT and not name.startswith(beside)]
        units: Mapping[str, str] = {}
        for cells in rows:
            # rows may be short, and of columns that come twice the first holds
            row = dict(reversed(list(zip(header, cells))))  # noqa: B905
            if not cells[0]:
                units = row
                continue
            number = first + int(cells[0])
            if number not in self.launches:
                self.launches[number] = _launch(row, number)
            if "Metric Name" not in header:
                for name in names:
                    self._value(number, name, units.get(name, ""), row.get(name, ""))
            elif row.get("Metric Name"):
                metric = metric_of(row.get("Section Name", ""), row["Metric Name"])
                self._value(number, metric, row.get("Metric Unit", ""), row.get("Metric Value", ""))
            elif row.get("Rule Name"):
                self.rules.append(_rule(number, row, self._german))

    def _value(self, launch: int, metric: str, unit: str, cell: str) -> None:
        """Keep a cell, where it is the first of a metric."""
        if cell.strip().lower() in MISSING:
            return
        value = number(cell, german=self._german)
        if value is None:
            self.metrics.setdefault((launch, metric), Metric(launch, metric, nan, text=cell))
            return
        if "." in cell:
            self.rounded.add(_ROUNDED.fullmatch(cell) is not None)
            if "per_cycle" in metric and cell.strip() == "0.00":
                return
        base, factor = base_unit(unit)
        kept = Metric(launch, metric, value * factor, stable_unit(metric, base))
        self.metrics.setdefault((launch, metric), kept)


def _launch(row: Mapping[str, str], number: int) -> Launch:
    capability = re.fullmatch(r"\d{1,3}\.\d{1,3}", row.get("CC", ""))
    return Launch(
        number,
        row.get("Kernel Name", ""),
        grid=_dimensions(row.get("Grid Size", "")),
        block=_dimensions(row.get("Block Size", "")),
        device=_whole(row.get("Device", "")),
        context=_whole(row.get("Context", "")),
        stream=_whole(row.get("Stream", "")),
        pid=_whole(row.get("Process ID", "")) or 0,
        process=row.get("Process Name", ""),
        capability=capability[0] if capability else "",
        nvtx=_nvtx(row),
    )


def _rule(launch: int, row: Mapping[str, str], german: bool) -> Rule:
    speedup = number(row.get("Estimated Speedup", ""), german=german)
    kind = row.get("Rule Type", "")
    return Rule(
        launch,
        row["Rule Name"],
        row.get("Section Name", ""),
        _TYPES.get(kind, kind.lower()),
        "",
        " ".join(row.get("Rule Description", "").split()),
        nan if speedup is None else speedup,
        row.get("Estimated Speedup Type", ""),
    )


def _nvtx(row: Mapping[str, str]) -> str:
    """The push/pop ranges of a row; "<default domain>:run_test:none:none:..." is one of them."""
    stacks: dict[str, list[str]] = {}
    for name, cell in row.items():
        if name.startswith(_PUSH_POP):
            for entry in _QUOTED.findall(cell or ""):
                domain, _, rest = entry.partition(":")
                match = _RANGE.fullmatch(rest)
                stacks.setdefault(domain, []).append(match[1] if match else rest.split(":")[0])
    return nvtx_text(stacks)


def _dimensions(cell: str) -> tuple[int, int, int] | None:
    match = _TUPLE.fullmatch(cell.strip())
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _whole(cell: str) -> int | None:
    text = cell.strip()
    return int(text) if text.isdecimal() and len(text) < LONGEST_WHOLE else None
