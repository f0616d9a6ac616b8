"""Units: what users type is read exactly, what they read is short and right."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nsightpy.errors import UsageError
from nsightpy.units import (
    TIME_UNITS,
    format_bytes,
    format_time,
    parse_time_ns,
    percent,
    significant,
    time_unit_for,
)

properties = settings(max_examples=150, deadline=None)
LATEST = 2**62 - 1


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        *((-7, -7), ("1.5µs", 1500), (" 20 ms ", 20_000_000), ("2min", 120_000_000_000)),
        *((".5us", 500), ("1e3", 1000), ("2.5E-3 s", 2_500_000), ("+7ns", 7)),
        # beyond float64: one more or less is another nanosecond
        ("1800000000.123456789s", 1_800_000_000_123_456_789),
        ("1800000000123.456789 ms", 1_800_000_000_123_456_789),
        *((str(LATEST), LATEST), (np.int64(LATEST), LATEST)),
        # a fraction of a nanosecond is cut off
        *(("1.9ns", 1), ("0.0015us", 1), ("1e-999999999s", 0)),
    ],
)
def test_times_are_read_exactly(text: str | int, ns: int) -> None:
    assert parse_time_ns(text) == ns


NO_TIMES = "|abc|1.5 us us|1h|ms|5.|1,5s|1_000|nan|inf|0x10|--1|1e|1 2|S|1 MS|2us;ls|1e999999999"


@pytest.mark.parametrize("text", NO_TIMES.split("|"))
def test_what_is_no_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a time: .*\(ns, us, ms, s, min\)") as caught:
        parse_time_ns(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "time",
    [str(2**62), "-1e19", "1e30 s", "293000000min", 2**62, -(2**62), 10**4000],
    ids=lambda time: str(time)[:9],
)
def test_times_beyond_int64_are_refused(time: str | int) -> None:
    with pytest.raises(UsageError, match="beyond every report"):
        parse_time_ns(time)


@properties
@given(st.integers(-(10**18), 10**18), st.sampled_from(["us", "µs", "ms", "s"]))
def test_every_nanosecond_can_be_said_in_every_unit(ns: int, unit: str) -> None:
    whole, rest = divmod(abs(ns), TIME_UNITS[unit])
    decimals = len(str(TIME_UNITS[unit])) - 1
    assert parse_time_ns(f"{'-' * (ns < 0)}{whole}.{rest:0{decimals}d}{unit}") == ns
    assert parse_time_ns(str(ns)) == parse_time_ns(f" {ns} ns ") == ns


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        *(
            ([], ("ns", 1)),
            ([None, 0], ("ns", 1)),
            ([999], ("ns", 1)),
            ([999, 1000], ("us", 10**3)),
        ),
        *(([-2_000_000, 5], ("ms", 10**6)), ([1, None, 999_999_999.9], ("ms", 10**6))),
        *(([10**9], ("s", 10**9)), ([10**15], ("s", 10**9))),
    ],
)
def test_units_are_of_the_largest(values: list[float | None], unit: tuple[str, int]) -> None:
    assert time_unit_for(values) == unit


TIMES = {None: "-", 0: "0 ns", 7: "7.00 ns", 999: "999 ns", 1234: "1.23 us", 12_345: "12.3 us"}
TIMES |= {123_456: "123 us", 9_999: "10.0 us", -1_500_000: "-1.50 ms", 0.5: "0.500 ns"}
TIMES |= {3_600_000_000_000: "3600 s", 10**24: "1000000000000000 s"}
SIZES = {None: "-", 0: "0 B", 999: "999 B", 1000: "1.00 KB", 45_600_000: "45.6 MB"}
SIZES |= {-2_000_000: "-2.00 MB", 80 * 10**9: "80.0 GB", 1_234 * 10**12: "1234 TB"}


def test_times_and_sizes_have_three_digits_in_a_unit_that_fits() -> None:
    assert {ns: format_time(ns) for ns in TIMES} == TIMES
    assert {size: format_bytes(size) for size in SIZES} == SIZES


@properties
@given(st.floats(-1e12, 1e12).filter(lambda value: abs(value) > 1e-9))
def test_significant_is_right_to_half_a_last_digit(value: float) -> None:
    text = significant(value)
    assert "e" not in text
    digits = text.strip("-").replace(".", "").lstrip("0")
    assert len(digits) == 3 or (len(digits) > 3 and "." not in text)
    last_place = Fraction(1, 10 ** len(text.partition(".")[2]))
    assert abs(Fraction(text) - Fraction(value)) <= last_place / 2


@pytest.mark.parametrize(
    ("part", "whole", "share"),
    [(1, 4, 25.0), (0, 4, 0.0), (3, 0, None), (None, 4, None), (3, None, None), (0, 0, None)],
)
def test_shares_of_nothing(part: float | None, whole: float | None, share: float | None) -> None:
    assert percent(part, whole) == share
