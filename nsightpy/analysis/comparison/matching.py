"""Which kernels, collectives and ranges of two sides are the same thing, and by what evidence.

First that fits: the full name; the name without numbers, then without the types among its
arguments, where that is unique on both sides; the place in the order of launches, where one is gone
and one is new between two that are the same. Of the last two launches must agree.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from nsightpy.analysis.comparison.thresholds import SAME_LAUNCHES
from nsightpy.names import function_name, without_numbers
from nsightpy.results.comparison import BASE_NAME, FULL_NAME, ORDER

_WORD = re.compile(r"[A-Za-z_]\w*")
# Words of a name that do not say what is computed, but on which type; without numbers.
_TYPE = re.compile(
    "bool|char|short|u?int|long|(un)?signed|tf|float|double|(nv_)?half(_t)?|Half|(nv_)?bfloat(_t)?|"
    "BFloat|complex|size_t|std|const|void|true|false|.?"
)


@dataclass(frozen=True, slots=True)
class Match:
    """A name before and one after that are the same thing; empty where a side has none of it."""

    before: str
    after: str
    matched_by: str = ""


def match(
    before: Mapping[str, float],
    after: Mapping[str, float],
    orders: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> list[Match]:
    """The matches of all names, each in one.

    `before`, `after`: launches a unit by name; `orders`: the names as one unit launches them.
    """
    found = [Match(name, name, FULL_NAME) for name in before if name in after]
    gone = {name: count for name, count in before.items() if name not in after}
    new = {name: count for name, count in after.items() if name not in before}
    for evidence, key in ((BASE_NAME, without_numbers), (BASE_NAME, program_of), (ORDER, None)):
        keys: list[Mapping[str, Hashable]]
        if key is not None:
            keys = [{name: key(name) for name in names} for names in (gone, new)]
        else:
            matched = [match.before for match in found], [match.after for match in found]
            keys = [_surroundings(*each) for each in zip(orders, matched, strict=True)]
        often, others = (Counter(each.values()) for each in keys)
        by_key = {key: name for name, key in keys[1].items()}
        for name, shared in keys[0].items():
            if often[shared] == others[shared] == 1:
                other = by_key[shared]
                if alike(gone[name], new[other], SAME_LAUNCHES):
                    found.append(Match(name, other, evidence))
                    del gone[name], new[other]
    found += [Match(name, "") for name in gone]
    found += [Match("", name) for name in new]
    return found


def _surroundings(
    order: Sequence[str], matched: Sequence[str]
) -> dict[str, frozenset[tuple[int, int]]]:
    """Where in an order of launches other names run: by the numbers of the matched around them."""
    numbers: dict[str | None, int] = {name: number for number, name in enumerate(matched)}
    around: dict[str, set[tuple[int, int]]] = defaultdict(set)
    left, between = -1, set[str]()
    for name in (*order, None):
        if name is not None and name not in numbers:
            between.add(name)
            continue
        right = numbers.get(name, -1)
        for other in between:
            around[other].add((left, right))
        left, between = right, set()
    return {name: frozenset(edges) for name, edges in around.items()}


def program_of(name: str) -> str:
    """The function of a name and what its arguments compute: functors, but no types and numbers."""
    words = {word.strip("_") for word in _WORD.findall(without_numbers(name))}
    computed = sorted(word for word in words if not _TYPE.fullmatch(word))
    return " ".join([without_numbers(function_name(name)), *computed])


def alike(value: float, other: float, share: float) -> bool:
    """Whether two numbers differ by no more than a share of the larger."""
    return abs(other - value) <= share * max(value, other)
