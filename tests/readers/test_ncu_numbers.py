"""Units and numbers as ncu of any year and locale prints them."""

from __future__ import annotations

import pytest

from nsightpy.readers.ncu.printed import base_unit, is_german, number


@pytest.mark.parametrize(
    ("printed", "unit", "factor"),
    [
        ("nsecond", "ns", 1.0),
        ("usecond", "ns", 1e3),
        ("ms", "ns", 1e6),
        ("second", "ns", 1e9),
        ("byte", "byte", 1.0),
        ("Kbyte", "byte", 1e3),
        ("Gbyte/second", "byte/s", 1e9),
        ("Tbyte/s", "byte/s", 1e12),
        ("cycle/second", "hz", 1.0),
        ("cycle/usecond", "hz", 1e6),
        ("cycle/nsecond", "hz", 1e9),
        ("Khz", "hz", 1e3),
        ("Ghz", "hz", 1e9),
        ("MHz", "hz", 1e6),
        ("hz", "hz", 1.0),
        ("Kbyte/cycle", "byte/cycle", 1e3),
        ("Kbyte/block", "byte/block", 1e3),
        ("byte/ns", "byte/s", 1e9),
        ("inst/cycle", "inst/cycle", 1.0),
        ("register/thread", "register/thread", 1.0),
        ("sector/second", "sector/s", 1.0),
        ("%", "%", 1.0),
        ("", "", 1.0),
        ("SM", "SM", 1.0),
        ("thread", "thread", 1.0),
    ],
)
def test_units_become_base_units(printed: str, unit: str, factor: float) -> None:
    assert base_unit(printed) == (unit, pytest.approx(factor))


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("0", 0.0),
        ("1,234,567.89", 1234567.89),
        ("12,319,469", 12319469.0),
        ("-1.5", -1.5),
        ("1e9", 1e9),
        ("7 (3; 4)", 7.0),
        ("240; 240", None),
        ("n/a", None),
        ("", None),
        ("nan", None),
        ("CachePreferNone", None),
    ],
)
def test_numbers(cell: str, value: float | None) -> None:
    assert number(cell) == value


def test_german_numbers() -> None:
    assert is_german(["4.963.609.951,19", "61,84"])
    assert is_german(["0,123"])
    assert not is_german(["4,963,609,951.19", "61.84"])
    assert not is_german(["4,963", "12,319"])  # grouping either way
    assert not is_german([])
    assert number("4.963.609.951,19", german=True) == 4963609951.19
    assert number("61,84", german=True) == 61.84
