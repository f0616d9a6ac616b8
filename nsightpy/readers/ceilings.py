"""Measured ceilings from a file: JSON, or lines of name, value and unit."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import file_errors, size_of_regular
from nsightpy.results.rooflines import LEVELS, SCALAR, Ceiling

MOST_BYTES = 1 << 20
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_WORK = re.compile(r"([kmgtp]?)(?:flops?|flop/s|ops?|ops/s)", re.IGNORECASE)
_TRAFFIC = re.compile(r"([kmgtp]?)(?:bytes?/s|b/s)", re.IGNORECASE)
_ADVICE = (
    'write one ceiling per line, as "fp32, 18.9, TFLOP/s" or "dram, 1.41, TB/s" '
    "(fp64, fp32, fp16, tensor_bf16, ..., dram, l2, l1), or the same as JSON: "
    '{"fp32": 1.89e13, "dram": 1.41e12}.'
)


def read_ceilings(path: Path | str) -> tuple[Ceiling, ...]:
    """The ceilings of a file, in FLOP/s and bytes/s. Raises ReportError for anything else."""
    path = Path(path)
    with file_errors(path):
        if size_of_regular(path) > MOST_BYTES:
            raise ReportError(path, "is too large for a list of ceilings", _ADVICE)
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReportError(path, f"cannot be read as text: {error}", _ADVICE) from error
    try:
        rows = _json_rows(path, text) if text.lstrip()[:1] in ("{", "[") else _text_rows(text)
    except csv.Error as error:
        raise ReportError(path, f"has a line that cannot be read: {error}", _ADVICE) from None
    ceilings = tuple(_ceiling(path, row) for row in rows)
    if not ceilings:
        raise ReportError(path, "holds no ceilings", _ADVICE)
    names = [ceiling.name for ceiling in ceilings]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ReportError(path, f"has more than one ceiling of {twice}", _ADVICE)
    return ceilings


def _json_rows(path: Path, text: str) -> list[list[str]]:
    try:
        content: Any = json.loads(text, object_pairs_hook=list)  # what is there twice stays
    except (ValueError, RecursionError) as error:
        raise ReportError(path, f"is no JSON: {error}", _ADVICE) from None
    if not text.lstrip().startswith("{"):
        raise ReportError(path, "is no JSON object of names and values", _ADVICE)
    return [[str(name), str(value)] for name, value in content]


def _text_rows(text: str) -> list[list[str]]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    rows = [
        next(csv.reader([line], skipinitialspace=True)) if "," in line else line.split(maxsplit=2)
        for line in lines
        if line
    ]
    heading = rows and [cell.strip().lower() for cell in rows[0]][:2] == ["name", "value"]
    return rows[1:] if heading else rows


def _ceiling(path: Path, row: list[str]) -> Ceiling:
    name = row[0].strip().lower()
    if name not in (*LEVELS, *SCALAR) and not name.startswith("tensor_"):
        raise ReportError(path, f"{row[0]!r} is no precision or memory level", _ADVICE)
    units = _TRAFFIC if name in LEVELS else _WORK
    unit = units.fullmatch(row[2].strip()) if len(row) > 2 and row[2].strip() else None
    try:
        if len(row) > 2 and row[2].strip() and unit is None:
            raise ValueError
        value = float(row[1]) * _PREFIXES[unit[1].lower() if unit else ""]
    except (ValueError, IndexError):
        raise ReportError(path, f"cannot read the ceiling {', '.join(row)!r}", _ADVICE) from None
    if not 0 < value < float("inf"):
        raise ReportError(path, f"the ceiling of {name} is not above zero", _ADVICE)
    return Ceiling(name, value)
