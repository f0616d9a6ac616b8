"""Checks on copies: what no kernel hides, pageable memory, pages that migrate."""

from __future__ import annotations

from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.analysis.findings.worst import worst
from nsightpy.analysis.memory.copies import CopyTime
from nsightpy.results import Finding
from nsightpy.units import format_bytes, format_count, significant

# Of copies smaller than this, a few microseconds of latency are the larger part.
SMALL_BYTES = 16_384
_BY_MEMORY = "--by memory"


def input_copies(facts: Facts) -> list[Finding]:
    """Host-to-device copies that nothing hides: the data loader's part of the critical path."""

    def lost(one: DeviceFacts) -> int:
        return one.input_copies.exposed_ns if one.input_copies else 0

    def text(one: DeviceFacts) -> str:
        size = one.input_copies.bytes if one.input_copies else 0
        return (
            f"host-to-device copies ({format_bytes(size)} in all) ran with no kernel beside them "
            "for {time}, {share} of {place}: prefetch on a stream of their own"
        )

    return worst(facts, "input copies not overlapped", lost, text, "memory", more=_BY_MEMORY)


def exposed_copies(facts: Facts) -> list[Finding]:
    """Copies of any direction with no kernel beside them, but for input copies."""

    def lost(one: DeviceFacts) -> int:
        mine = one.input_copies.exposed_ns if one.input_copies else 0
        return max(one.budget.copy_only_ns - mine, 0)

    def text(_: DeviceFacts) -> str:
        return (
            "copies other than from host to device ran with no kernel beside them for {time}, "
            "{share} of {place}"
        )

    return worst(facts, "copies not overlapped", lost, text, "memory", more=_BY_MEMORY)


def pageable_copies(facts: Facts) -> list[Finding]:
    """Copies from or to pageable memory: slow, and never asynchronous."""

    def lost(one: DeviceFacts) -> int:
        return one.pageable.busy_ns if one.pageable else 0

    def text(one: DeviceFacts) -> str:
        return "" if one.pageable is None else _pageable(one.pageable)

    return worst(facts, "pageable copies", lost, text, "memory", more=_BY_MEMORY)


def _pageable(copies: CopyTime) -> str:
    size = format_bytes(copies.bytes)
    if copies.bytes < SMALL_BYTES * copies.count:
        each = format_bytes(copies.bytes / max(copies.count, 1))
        return (
            f"{format_count(copies.count)} copies of {each} each on average, from or to pageable "
            "memory, took {time}, {share} of {place}: fewer or none of them would help, they are "
            "too small for their speed to matter"
        )
    rate = f" at {significant(copies.gb_per_s)} GB/s" if copies.gb_per_s else ""
    return (
        f"{size} were copied from or to pageable memory in {{time}}{rate}, {{share}} of {{place}}; "
        "pinned memory copies faster and overlaps"
    )


def unified_memory(facts: Facts) -> list[Finding]:
    """Pages of unified memory that migrate while kernels wait for them."""

    def lost(one: DeviceFacts) -> int:
        return one.unified.busy_ns if one.unified else 0

    def text(one: DeviceFacts) -> str:
        size = format_bytes(one.unified.bytes if one.unified else 0)
        return (
            f"{size} of unified memory migrated in {{time}}, {{share}} of {{place}}; "
            "prefetching avoids page faults"
        )

    return worst(facts, "unified memory migrates", lost, text, "memory", more=_BY_MEMORY)


COPY_CHECKS = (input_copies, exposed_copies, pageable_copies, unified_memory)
