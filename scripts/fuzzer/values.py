"""Values that nobody should write into a report, and words that must reach no output raw."""

import copy
import random

SECRET = "hunter2-XYZZY-token"
SCRIPT = "<script>alert(7)</script>"
HOSTILE = f"\x1b[31mred\x1b]0;title\x07{SCRIPT}|`*_#\u202eright\r\n'; rm -rf $(HOME)\x9b0m\x00end"
FORMULA = '=cmd|"/c calc"!A1'
TEXTS = ("", " ", HOSTILE, FORMULA, "é" * 300, "x" * 100_000, "?", "%s%n{0}", "NaN")
INTS = (0, 1, -1, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
HUGE_INTS = (2**63, 2**64, 10**30, -(10**30))
FLOATS = (0.5, -0.0, 1e308, -1e308, float("inf"), float("-inf"), 1e19)
# Data nested without end.
DEEP = "\ue000deep\ue000"
BYTES = (b"", b"\x00\xff\xfe", HOSTILE.encode())
STRUCTURES: tuple[object, ...] = ([], {}, [[]], {"": None}, [1, "a"], True)


def sql_value(rng: random.Random) -> object:
    """Anything that SQLite stores."""
    return rng.choice(rng.choice(((None,), TEXTS, BYTES, FLOATS, INTS, INTS)))


def json_value(rng: random.Random) -> object:
    """Anything that JSON can say."""
    numbers = (*FLOATS, float("nan")), (*HUGE_INTS, "12", "1e5", "-3"), INTS, INTS
    kinds: tuple[tuple[object, ...], ...] = ((None,), TEXTS, STRUCTURES, (DEEP,), *numbers)
    return copy.deepcopy(rng.choice(rng.choice(kinds)))
