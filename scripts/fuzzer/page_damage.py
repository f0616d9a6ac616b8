"""Damage to CSV pages of ncu as programs and countries write CSV, and to lists of ceilings."""

import csv
import io
import random
from collections.abc import Callable

from fuzzer.values import HOSTILE

CELLS = (
    *("1.234,5", "1,234.5", "1 234,5", "1'234.5", "n/a", "(null)", "", "inf", "-nan", "1e400"),
    *("-1", "0x1F", "१२", "1.5 %", "1.5e", "(1, 1, 1)", "(1,,1)", "9" * 300, "1e308", "\x00"),
    *("(99999999999999999999, 1, 1)", "-(1,1,1)", HOSTILE.replace("\r\n", "")),
)
UNITS = ("ns", "us", "nsecond", "usecond", "byte", "Kbyte", "%", "hz", "Ghz", "inst")
Rows = list[list[str]]


def column(rows: Rows, rng: random.Random) -> None:
    """One column, ids among them, holds something else in some rows, or all."""
    at, value, share = rng.randrange(len(rows[0])), rng.choice(CELLS), rng.choice((0.1, 1.0))
    for row in rows[1:]:
        if at < len(row) and rng.random() < share:
            row[at] = value


def german(rows: Rows, rng: random.Random) -> None:
    table = str.maketrans(",.", ".,")
    rows[1:] = [[c.translate(table) if c[:1].isdigit() else c for c in row] for row in rows[1:]]


def units(rows: Rows, rng: random.Random) -> None:
    """Other units, or no row of them."""
    if rng.random() < 0.3:
        del rows[1:2]
    other = ("ns", "fortnight", "%", "byte/second", "", "Tbyte", "s", "\x1b")
    for row in rows[1:]:
        row[:] = [rng.choice(other) if cell in UNITS else cell for cell in row]


def headings(rows: Rows, rng: random.Random) -> None:
    """A heading is another one or too long, or its column is gone."""
    at = rng.randrange(len(rows[0]))
    rows[0][at] = rng.choice((rows[0][0], "", "x" * 10_000, rows[0][at].lower(), " " + rows[0][at]))
    if rng.random() < 0.3:
        for row in rows:
            del row[at : at + 1]


def lengths(rows: Rows, rng: random.Random) -> None:
    """Rows are ragged, repeated, or one cell of them is huge."""
    for row in rows[1:]:
        if rng.random() < 0.2:
            row[rng.randrange(len(row) + 1) :] = ["x"] * rng.choice((0, 1, 5000))
    rng.choice(rows)[:1] = ["y" * rng.choice((1, 140_000, 8_000_000))]
    rows *= rng.choice((1, 2))


DAMAGES: tuple[Callable[[Rows, random.Random], None], ...] = (
    *(column, column, column, german, units, headings, lengths),
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
    out, odd = io.StringIO(), rng.random() < 0.3
    mark, end = (
        (rng.choice((",", ";", "\t", "|")), rng.choice(("\n", "\r\n", "\r"))) if odd else ",\n"
    )
    csv.writer(out, delimiter=mark, quoting=csv.QUOTE_ALL, lineterminator=end).writerows(rows)
    text = out.getvalue()
    if rng.random() < 0.2:
        text = rng.choice(("==PROF== Connected to process 1\n", "\n\n", "\x00", "sep=,\n")) + text
    if rng.random() < 0.1:
        text += rng.choice(("==ERROR== x\n", "==WARNING== x", '"', "\x00" * 50))
    coded = rng.choice(("utf-8",) * 6 + ("utf-8-sig", "utf-16", "latin-1", "utf-32"))
    return text.encode(coded, "replace"), ", ".join([*done, coded])
