"""Kernels whose time differs between ranks, compared only between ranks that do the same work.

Ranks do the same work when they run the same kernels in the same proportions (pipeline stages do
not). Where one captured more iterations than another, all kernels are more by the same factor, and
totals are scaled to the usual amount; a stage with more layers has more of some kernels only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from nsightpy.analysis.collectives.thresholds import NEARLY_ALL
from nsightpy.analysis.ranks.thresholds import DIFFERENT

Rank: TypeAlias = int


@dataclass(frozen=True, slots=True)
class KernelImbalance:
    """One kernel over the ranks of one kind of work; total times of a rank in ns.

    `scaled`: totals are scaled to the usual amount of captured work.
    """

    name: str
    ranks: tuple[int, ...]
    total_med_ns: float
    total_mean_ns: float
    total_max_ns: float
    slowest: int
    instances_min: int
    instances_max: int

    @property
    def max_over_mean(self) -> float | None:
        return self.total_max_ns / self.total_mean_ns if self.total_mean_ns else None

    @property
    def excess_ns(self) -> float:
        """What the slowest rank takes beyond the mean."""
        return self.total_max_ns - self.total_mean_ns


@dataclass(frozen=True)
class Imbalance:
    """All kernels, the largest excess first; the kinds of work; each rank's amount of work."""

    kernels: tuple[KernelImbalance, ...]
    kinds: tuple[tuple[int, ...], ...]
    amounts: Mapping[int, float]


# For each rank: kernel name -> (instances, total ns).
Profile: TypeAlias = Mapping[str, tuple[int, int]]


def imbalance_of(profiles: Sequence[Profile]) -> Imbalance:
    """Compare ranks, given by place; only kinds of work that several ranks do have rows."""
    kinds = _kinds(profiles)
    amounts: dict[int, float] = {}
    rows: list[KernelImbalance] = []
    for members in kinds:
        amounts |= _amounts([profiles[m] for m in members], members)
        names = dict.fromkeys(name for m in members for name in profiles[m])
        if len(members) > 1:
            rows += [_row(name, members, profiles, amounts) for name in names]
    rows.sort(key=lambda row: (-row.excess_ns, row.name, row.ranks))
    return Imbalance(tuple(rows), tuple(kinds), amounts)


def _kinds(profiles: Sequence[Profile]) -> list[tuple[int, ...]]:
    """Ranks put together by what they run; each joins the first kind that it resembles."""
    kinds: list[list[int]] = []
    for place, profile in enumerate(profiles):
        home = next((k for k in kinds if _same_work(profiles[k[0]], profile)), None)
        if home is None:
            kinds.append([place])
        else:
            home.append(place)
    return [tuple(kind) for kind in kinds]


def _same_work(profile: Profile, other: Profile) -> bool:
    """Whether two ranks run the same kernels in the same proportions, however many iterations."""
    if _difference(profile, other) > DIFFERENT:
        return False
    counts = [(profile[name][0], other[name][0]) for name in profile if name in other]
    usual = median([theirs / own for own, theirs in counts]) if counts else 1.0
    # A capture may begin or end within an iteration: one iteration's kernels more or less.
    iterations = sorted(own for own, _ in counts)[len(counts) // 10] if counts else 1
    most = 1.0 - NEARLY_ALL
    odd = sum(
        abs(theirs - usual * own) > max(most * usual * own, own / iterations)
        for own, theirs in counts
    )
    return odd <= most * len(counts)


def _difference(profile: Profile, other: Profile) -> float:
    """Half the sum of differences of the shares of instances: 0 the same, 1 nothing shared."""
    if not profile or not other:
        return float(bool(profile) != bool(other))
    counts, others = (sum(count for count, _ in p.values()) for p in (profile, other))
    names = {*profile, *other}
    nothing = (0, 0)
    parts = (profile.get(n, nothing)[0] / counts - other.get(n, nothing)[0] / others for n in names)
    return sum(map(abs, parts)) / 2


def _amounts(profiles: Sequence[Profile], members: Sequence[int]) -> dict[int, float]:
    """How much of the usual work each rank captured: the median ratio of instances."""
    usual: dict[str, float] = {}
    for name in {name for profile in profiles for name in profile}:
        usual[name] = median(profile.get(name, (0, 0))[0] for profile in profiles)
    amounts = {}
    for member, profile in zip(members, profiles, strict=True):
        ratios = [count / usual[name] for name, (count, _) in profile.items() if usual[name]]
        amounts[member] = median(ratios) if ratios else 1.0
    return amounts


def _row(
    name: str, members: Sequence[int], profiles: Sequence[Profile], amounts: Mapping[int, float]
) -> KernelImbalance:
    figures = {member: profiles[member].get(name, (0, 0)) for member in members}
    totals = {
        m: total / amounts[m] if amounts[m] else float(total) for m, (_, total) in figures.items()
    }
    slowest = max(totals, key=lambda member: (totals[member], -member))
    counts = [count for count, _ in figures.values()]
    return KernelImbalance(
        name,
        tuple(members),
        median(totals.values()),
        sum(totals.values()) / len(totals),
        totals[slowest],
        slowest,
        min(counts),
        max(counts),
    )
