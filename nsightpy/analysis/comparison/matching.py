"""Which kernels, collectives and ranges of two sides are the same thing, and by what evidence.

First that fits: the full name; the name without numbers, then without the types among its template
arguments; one in the place of several in the order of launches, or several for one; the same path
(NVTX ranges or operators) and position in it; the same place in the order; the class of kernel, of
those that autotuners choose, which may move some launches of a kernel only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nsightpy.analysis.comparison.alignment import Block, blocks_between
from nsightpy.analysis.comparison.kernel_names import GRAPH, TUNED, program_of, without_numbers

FULL_NAME, BASE_NAME = "full name", "name without arguments"
PATH, ORDER, CATEGORY = "path and position", "order", "category"
RENAMED, VARIANT, REPLACED = "renamed", "variant", "replaced"
FUSED, SPLIT, NEW, GONE = "fused", "split", "new", "gone"
# Launches a unit may differ by so much where names do not tell; and where some have moved.
ALIKE, MOVED = 0.25, 0.05


@dataclass(frozen=True, slots=True)
class Item:
    """Something that one side runs, in a typical run: launches a unit, time of one in ns."""

    name: str
    count: float
    duration_ns: float
    path: str = ""
    position: float | None = None
    category: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """What is taken for the same: names on both sides, by what, and what became of it.

    `context` names what took part and has a row of its own.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    matched_by: str = ""
    change: str = ""
    context: tuple[str, ...] = ()


@dataclass
class _Search:
    """What is matched so far, and what is left of each side."""

    before: dict[str, Item]
    after: dict[str, Item]
    items: tuple[Mapping[str, Item], Mapping[str, Item]]
    known: dict[str, str] = field(default_factory=dict)
    pairs: list[Match] = field(default_factory=list)

    def take(self, match: Match) -> None:
        for name in match.before:
            self.before.pop(name, None)
        for name in match.after:
            self.after.pop(name, None)
        if match.before and match.after:
            self.known |= dict.fromkeys(match.before, match.after[0])
        self.pairs.append(match)

    def pair(self, first: Item, second: Item, by: str) -> None:
        """One for one; what became of it follows from the names."""
        self.take(Match((first.name,), (second.name,), by, _change(first, second)))


def match(
    before: Mapping[str, Item],
    after: Mapping[str, Item],
    orders: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> list[Match]:
    """The matches of all items, each in one; `orders`: the launches of one unit by name.

    Where one side runs CUDA graphs traced as a whole, and the other none, the order of what is left
    beside them says nothing: what the graphs launch is in none.
    """
    if _has_graphs(before) != _has_graphs(after):
        orders = ((), ())
    search = _Search(dict(before), dict(after), (before, after))
    for name in sorted(before.keys() & after.keys()):
        search.take(Match((name,), (name,), FULL_NAME))
    for key in (without_numbers, program_of):
        _by_key(search, lambda item, key=key: key(item.name), BASE_NAME)  # type: ignore[misc]
    _in_place(search, orders, _joined_or_divided)
    _by_path(search)
    _in_place(search, orders, _replaced)
    _by_category(search)
    _moved(search)
    for name in list(search.before):
        search.take(Match((name,), (), "", GONE))
    for name in list(search.after):
        search.take(Match((), (name,), "", NEW))
    return search.pairs


def _has_graphs(items: Mapping[str, Item]) -> bool:
    return any(item.category == GRAPH for item in items.values())


def _change(first: Item, second: Item) -> str:
    if first.category == second.category and first.category in TUNED:
        return VARIANT
    if first.category == second.category == GRAPH:
        return ""
    return RENAMED if program_of(first.name) == program_of(second.name) else REPLACED


def _by_key(search: _Search, key: Callable[[Item], str], by: str) -> None:
    """Pair what has one key, the likest first; of what is tuned, all of one key together."""
    for first, second in _groups(search, key):
        tuned = first[0].category in TUNED
        if len(first) != len(second) and tuned:
            names = tuple(item.name for item in first), tuple(item.name for item in second)
            search.take(Match(*names, by, VARIANT))
        else:
            _pair_alike(search, first, second, by)


def _groups(search: _Search, key: Callable[[Item], str]) -> list[tuple[list[Item], list[Item]]]:
    """What is left on both sides under one key that is not empty."""
    first, second = _keyed(search.before.values(), key), _keyed(search.after.values(), key)
    return [(first[group], second[group]) for group in first if group and group in second]


def _keyed(items: Iterable[Item], key: Callable[[Item], str]) -> dict[str, list[Item]]:
    keyed: dict[str, list[Item]] = {}
    for item in items:
        keyed.setdefault(key(item), []).append(item)
    return keyed


def _pair_alike(
    search: _Search, first: Sequence[Item], second: Sequence[Item], by: str, apart: float = 1.0
) -> None:
    """Pair the likest first, of those whose numbers of launches are so far apart at most."""
    pairs = sorted(
        (_unlike(item, other), place, at)
        for place, item in enumerate(first)
        for at, other in enumerate(second)
        if _near(item.count, other.count, apart)
    )
    for _, place, at in pairs:
        item, other = first[place], second[at]
        if item.name in search.before and other.name in search.after:
            search.pair(item, other, by)


def _unlike(item: Item, other: Item) -> float:
    """How unlike two items are: path, number of launches, position, length."""
    count = abs(item.count - other.count) / max(item.count, other.count, 1e-9)
    length = abs(item.duration_ns - other.duration_ns) / max(
        item.duration_ns, other.duration_ns, 1e-9
    )
    place = 0.0
    if item.position is not None and other.position is not None:
        place = abs(item.position - other.position)
    return 2.0 * (item.path != other.path) + count + place + 0.5 * length


def _by_path(search: _Search) -> None:
    """What is launched in the same ranges or operators, as often, and in the same order there."""
    for first, second in _groups(search, lambda item: item.path):
        if len(first) != len(second):
            continue
        ordered = [
            sorted(each, key=lambda item: (item.position or 0.0, item.name))
            for each in (first, second)
        ]
        if all(_near(item.count, other.count, ALIKE) for item, other in zip(*ordered, strict=True)):
            for item, other in zip(*ordered, strict=True):
                search.pair(item, other, PATH)


def _in_place(
    search: _Search,
    orders: tuple[Sequence[str], Sequence[str]],
    take: Callable[[_Search, Block], None],
) -> None:
    """What stands in the place of what between launches that are the same on both sides."""
    if not search.after or not all(orders):
        return
    blocks = blocks_between(*orders, search.known)
    for block, _ in sorted(blocks.items(), key=lambda entry: (-entry[1], entry[0])):
        first, second = (tuple(dict.fromkeys(names)) for names in block)
        if second and all(name in search.after for name in second):
            take(search, (first, second))


def _joined_or_divided(search: _Search, block: Block) -> None:
    """One kernel in the place of several, some of which may run elsewhere, too; and several for
    one."""
    first, second = block
    gone = tuple(name for name in first if name in search.before)
    if len(first) > 1 and len(second) == 1:
        context = tuple(name for name in first if name not in search.before)
        search.take(Match(gone, second, ORDER, FUSED, context))
    elif len(gone) == len(first) == 1 and len(second) > 1:
        search.take(Match(gone, second, ORDER, SPLIT))


def _replaced(search: _Search, block: Block) -> None:
    """One kernel in the place of another, or several in the order in which they are."""
    first, second = block
    if len(first) == len(second) and all(name in search.before for name in first):
        for name, other in zip(first, second, strict=True):
            search.pair(search.before[name], search.after[other], ORDER)


def _by_category(search: _Search) -> None:
    """Tuned kernels of one class that are launched as often."""
    for first, second in _groups(
        search, lambda item: item.category if item.category in TUNED else ""
    ):
        _pair_alike(search, first, second, CATEGORY, ALIKE)


def _moved(search: _Search) -> None:
    """Tuned kernels that took, or gave up, some launches of others which run on both sides.

    Of one class, under one path: what left and what came is as many launches.
    """
    for group in sorted(
        {_group(item) for item in (*search.before.values(), *search.after.values())}
    ):
        changed = [pair for pair in search.pairs if _is_changed(search, pair, group)]
        names = [
            tuple(name for pair in changed for name in (pair.before, pair.after)[side])
            + tuple(name for name, item in left.items() if _group(item) == group)
            for side, left in enumerate((search.before, search.after))
        ]
        first, second = (
            sum(side[name].count for name in side_names)
            for side, side_names in zip(search.items, names, strict=True)
        )
        if group[0] in TUNED and changed and _near(first, second, MOVED):
            search.pairs = [pair for pair in search.pairs if pair not in changed]
            search.take(Match(names[0], names[1], CATEGORY, VARIANT))


def _group(item: Item) -> tuple[str, str]:
    return item.category, item.path


def _is_changed(search: _Search, match: Match, group: tuple[str, str]) -> bool:
    """Whether a match is of one kernel of a group with itself that gained or lost launches."""
    if match.matched_by != FULL_NAME:
        return False
    first, second = (side[match.before[0]] for side in search.items)
    return _group(first) == _group(second) == group and not _near(first.count, second.count, MOVED)


def _near(value: float, other: float, share: float) -> bool:
    return abs(value - other) <= share * max(value, other)
