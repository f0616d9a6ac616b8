"""What ranks send to each other, and what groups of ranks move within a node and across nodes."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.ranks.collective_groups import GroupedCollective, bus_factor
from nsightpy.frames import Frame
from nsightpy.results.keys import Row, Value
from nsightpy.units import group_text

# Of the frame of collectives: who sends, and what, as receiver:bytes.
SENT = ("pid", "operation", "communicator", "group_size", "group_rank", "sent")
# By sender (the first five of these) and receiver how many messages, their bytes, the largest.
Sent: TypeAlias = dict[tuple[Any, ...], tuple[int, int, int]]
WITHIN, ACROSS, UNKNOWN_PLACE = "within a node", "across nodes", "not known"


def sent_by(collectives: Frame) -> Sent:
    """What the processes of a report sent; receivers are ranks of the communicator."""
    sent: Sent = {}
    groups = group_by(collectives, SENT)
    for key, instances in zip(groups.keys, np.bincount(groups.codes).tolist(), strict=True):
        *sender, text = cast(tuple[Any, ...], key)
        for message in text.split():
            target, size = map(int, message.split(":"))
            count, total, most = sent.get((*sender, target), (0, 0, 0))
            total += instances * size
            sent[*sender, target] = (count + instances, total, max(most, size))
    return sent


def pairs_of(messages: Sequence[tuple[Any, ...]]) -> list[Row]:
    """Sender, receiver, operation, group, messages, bytes, the largest, and bytes over the mean of
    the group's pairs, most bytes first. Messages are of Sent, with names for the processes;
    receivers that were not captured go by their place in the group: `?3`."""
    names = {(which, own): name for name, _, which, _, own, *_ in messages if own >= 0}
    members: dict[str, set[Value]] = defaultdict(set)
    passed: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name, operation, which, *_, size, _ in messages:
        members[which].add(name)
        passed[operation, which].append(size)
    groups = {which: group_text(list(ranks)) for which, ranks in members.items()}
    means = {kind: sum(sizes) / len(sizes) for kind, sizes in passed.items()}
    pairs = []
    for name, operation, which, ranks, _, place, count, size, most in messages:
        target, mean = names.get((which, place), f"?{place}"), means[operation, which]
        group = groups[which] + ",?" * (ranks > len(members[which]))
        ends = ((isinstance(end, str), end) for end in (name, target))
        figures = (count, size, most, size / mean if mean else None)
        pairs.append(((-size, operation, which, *ends), (name, target, operation, group, *figures)))
    return [row for _, row in sorted(pairs)]


def receivers_of_most(pairs: Iterable[Row]) -> list[tuple[float, Row]]:
    """Operation, group and who receives most of several there, each with how much over the mean."""
    received = defaultdict[Row, Counter[Value]](Counter)
    for _, target, *kind, _, size, _, _ in pairs:
        received[tuple(kind)][target] += int(size or 0)
    found: list[tuple[float, Row]] = []
    for key, by_rank in received.items():
        ((rank, most),) = by_rank.most_common(1)
        if len(by_rank) > 2:
            found.append((most * len(by_rank) / max(by_rank.total(), 1), (*key, rank)))
    return sorted(found, key=lambda entry: -entry[0])


def traffic_by_node(groups: Iterable[GroupedCollective], hosts: Sequence[str]) -> list[Row]:
    """The operations of groups of one place, most time first: how many groups, nodes, instances;
    bytes, transfer, bus GB/s, wait, and its share of all ranks' time. `hosts` are by unit."""
    by_place: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for group in (each for each in groups if each.sums_ns):  # others have no counterpart
        nodes = {hosts[unit] for unit in group.units}
        torn = len(nodes) == 1 and group.size > len(group.units)
        where = UNKNOWN_PLACE if torn or "" in nodes else ACROSS if len(nodes) > 1 else WITHIN
        moved = math.nan if group.bytes is None else group.instances * group.bytes
        bus = moved * bus_factor(group.signature, group.ranks)
        figures = (group.communicators, nodes, group.instances, moved, bus, *group.sums_ns)
        by_place[where, group.signature.operation].append(figures)
    rows = []
    for key, parts in sorted(by_place.items()):
        owners, hosted, *columns = zip(*parts, strict=True)
        count, moved, bus, transfer, wait, duration = map(sum, columns)
        size = None if math.isnan(moved) else moved
        rate = None if size is None or not transfer else bus / transfer
        counts = (len(set().union(*owners)), len(set().union(*hosted) - {""}), count)
        share = wait / duration if duration else None
        rows.append((-duration, *key, *counts, size, transfer, rate, wait, share))
    return [row[1:] for row in sorted(rows)]
