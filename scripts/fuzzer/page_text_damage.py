"""Damage to CSV pages of ncu as programs and countries write CSV, and to other small texts."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from typing import Any

from fuzzer.values import HOSTILE

CELLS = (
    *(
        "1.234,5",
        "1,234.5",
        "1 234,5",
        "1'234.5",
        "n/a",
        "(null)",
        "",
        "inf",
        "-nan",
        "1e400",
        "-1",
    ),
    *("0x1F", "१२", "1.5 %", "1.5e", "(1, 1, 1)", "(1,,1)", "(0,0,0)", "9" * 300, "1e308", "\x00"),
    *("(99999999999999999999, 1, 1)", "-(1,1,1)", HOSTILE.replace("\r\n", "")),
)
UNITS = ("ns", "us", "nsecond", "usecond", "byte", "Kbyte", "%", "hz", "Ghz", "inst")
Rows = list[list[str]]


def quoting(rows: Rows, rng: random.Random) -> str:
    out = io.StringIO()
    mark = rng.choice((",", ";", "\t", "|"))
    how: Any = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
    csv.writer(out, delimiter=mark, quoting=how, lineterminator=rng.choice(("\n", "\r\n", "\r"))
    ).writerows(rows)  # fmt: skip
    return out.getvalue()


def plain(rows: Rows) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


def column(rows: Rows, rng: random.Random) -> None:
    """One column holds something else in some rows, or all."""
    at, value, share = rng.randrange(len(rows[0])), rng.choice(CELLS), rng.choice((0.1, 1.0))
    for row in rows[1:]:
        if at < len(row) and rng.random() < share:
            row[at] = value


def german(rows: Rows, rng: random.Random) -> None:
    table = str.maketrans(",.", ".,")
    rows[1:] = [[c.translate(table) if c[:1].isdigit() else c for c in row] for row in rows[1:]]


def no_units(rows: Rows, rng: random.Random) -> None:
    if len(rows) > 1 and rng.random() < 0.5:
        del rows[1]
        return
    at = next((n for n, c in enumerate(rows[0]) if "Unit" in c), None)
    for row in rows[1:] if at is not None else rows[1:2]:
        row[at or 0 : (at or len(row) - 1) + 1] = [""]


def other_units(rows: Rows, rng: random.Random) -> None:
    for row in rows[1:]:
        for at, cell in enumerate(row):
            if cell in UNITS:
                row[at] = rng.choice(
                    ("ns", "fortnight", "%", "byte/second", "", "Tbyte", "s", "\x1b")
                )


def headings(rows: Rows, rng: random.Random) -> None:
    at = rng.randrange(len(rows[0]))
    rows[0][at] = rng.choice((rows[0][0], "", "x" * 10_000, rows[0][at].lower(), " " + rows[0][at]))


def without_column(rows: Rows, rng: random.Random) -> None:
    at = rng.randrange(len(rows[0]))
    for row in rows:
        del row[at : at + 1]


def repeated(rows: Rows, rng: random.Random) -> None:
    rows *= rng.choice((2, 3))


def ragged(rows: Rows, rng: random.Random) -> None:
    for row in rows[1:]:
        if rng.random() < 0.2:
            row[rng.randrange(len(row) + 1) :] = ["x"] * rng.choice((0, 1, 5000))


def huge_cell(rows: Rows, rng: random.Random) -> None:
    rng.choice(rows)[0] = "y" * rng.choice((140_000, 8_000_000))


def ids(rows: Rows, rng: random.Random) -> None:
    value = rng.choice(("0", "-1", "9" * 30, "x", "1.5", ""))
    for row in rows[1:]:
        row[0] = value


DAMAGES: tuple[Callable[[Rows, random.Random], None], ...] = (
    *(column, column, column, german, no_units, other_units, headings, without_column, repeated),
    *(ragged, huge_cell, ids),
)


def page(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A CSV page with some damages, in one of the ways in which text is stored."""
    rows = [row for row in csv.reader(io.StringIO(data.decode("utf-8", "replace"))) if row]
    done = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        act = rng.choice(DAMAGES)
        act(rows, rng)
        rows = [row for row in rows if row] or [[""]]
        done.append(act.__name__)
    text = quoting(rows, rng) if rng.random() < 0.3 else plain(rows)
    if rng.random() < 0.2:
        text = rng.choice(("==PROF== Connected to process 1\n", "\n\n", "\x00", "sep=,\n")) + text
    if rng.random() < 0.1:
        text += rng.choice(("==ERROR== x\n", "==WARNING== x", '"', "\x00" * 50))
    coded = rng.choice(("utf-8",) * 6 + ("utf-8-sig", "utf-16", "latin-1", "utf-32"))
    return text.encode(coded, "replace"), ", ".join([*done, coded])


CEILINGS = (
    *("fp32, 18.9, TFLOP/s\ndram, 1.4, TB/s\n", '{"fp32": 1.89e13, "dram": 1.41e12}', ""),
    *('{"fp32": 1e400}', '{"fp32": NaN}', "{" * 100_000, "[" * 100_000, '{"fp32": [1]}', "fp32"),
    *("fp32, -1", "fp32, 0", "fp32, 1,5, TFLOP/s", '"', "fp32 18.9 TFLOP/s\n" * 20_000, "\x00" * 9),
    *("fp32, " + "9" * 5000, '{"fp32": ' + "9" * 5000 + "}", "\ufefffp32, 1, TFLOP/s", "\x1b, 1"),
    *("tensor_" + "x" * 500_000 + ", 5, TFLOP/s", "fp32, 1e308, PFLOP/s", "dram, 5, parsec"),
    *("# nothing\n", "name, value\n", "x" * 2_000_000, "fp32, 1e-320, TFLOP/s", "fp64,1\nfp64,2\n"),
)
