"""Checks on copies: what no kernel hides, pageable memory, small copies, pages that migrate."""

from __future__ import annotations

from nsightpy.analysis.findings.copy_use import SMALL_BYTES, CopyUse
from nsightpy.analysis.findings.facts import DeviceFacts, Facts, Place
from nsightpy.analysis.findings.worst import worst
from nsightpy.results import Finding
from nsightpy.units import counted, format_bytes, format_count, significant

_BY_MEMORY = "--by memory"
MANY = 100
_TOWARDS = {
    "h2d": ("from host to device", "copy ahead on another stream"),
    "d2h": ("from device to host", "copy on another stream while kernels run"),
    "d2d": ("and memory sets within or between devices", ""),
}
_ONCE = "; where they happen once, they matter once"
_LESS = {"h2d": "keep the data on the device", "d2h": "copy less", "d2d": "write results in place"}


def exposed_copies(facts: Facts) -> list[Finding]:
    """Copies with no kernel beside them, by direction; what the driver stages counts with them."""
    return [finding for direction in _TOWARDS for finding in _exposed(facts, direction)]


def _exposed(facts: Facts, direction: str) -> list[Finding]:
    way, beside = _TOWARDS[direction]

    def use(device: DeviceFacts) -> CopyUse:
        copies: CopyUse = CopyUse() if device.copies is None else getattr(device.copies, direction)
        return copies

    def lost(device: DeviceFacts) -> int:
        return use(device).exposed_ns + device.caused_ns(f"exposed-{direction}")

    def text(device: DeviceFacts) -> str:
        copies = use(device)
        memory = _pageable_text(copies)
        advice = _LESS[direction]
        if device.kernels is not None and device.kernels.directives:
            advice = "keep the data mapped across regions (target data, enter data)"
        elif not device.iterations:
            advice += "; an upload before the kernels matters once" if copies.once else _ONCE
        elif beside:
            advice += f", or {beside}"
        return (
            f"{counted(copies.count, 'copy', 'copies')} {way} ({format_bytes(copies.bytes)}"
            f"{memory}) ran with no kernel beside them: {{time}}, {{share}} of {{place}}; "
            f"{advice}"
        )

    return worst(
        facts,
        f"exposed-{direction}",
        f"copies not overlapped: {way}",
        lost,
        text,
        "memory",
        more=_BY_MEMORY,
        place=lambda device: _place(use(device)),
        most=lambda device: _severity(device, use(device)),
    )


def pageable_copies(facts: Facts) -> list[Finding]:
    """Large copies from or to pageable memory; their time is that of the exposed copies."""

    def lost(device: DeviceFacts) -> int:
        return 0 if device.copies is None else device.copies.pageable.exposed_ns

    def text(device: DeviceFacts) -> str:
        copies = CopyUse() if device.copies is None else device.copies.pageable
        rate = f" at {significant(copies.gb_per_s)} GB/s" if copies.gb_per_s else ""
        return (
            f"{format_bytes(copies.bytes)} in {counted(copies.count, 'copy', 'copies')} came from "
            f"or went to pageable memory{rate}, {{share}} of {{place}} (the same time as "
            "that of the copies not overlapped): pinned memory copies faster, and beside kernels"
        )

    return worst(
        facts,
        "pageable-copies",
        "pageable copies",
        lost,
        text,
        "memory",
        more=_BY_MEMORY,
        recoverable=False,
        place=lambda device: None if device.copies is None else _place(device.copies.pageable),
        most=lambda device: (
            "" if device.copies is None else _severity(device, device.copies.pageable)
        ),
    )


def many_small_copies(facts: Facts) -> list[Finding]:
    """Copies whose number costs, not their bytes."""

    def lost(device: DeviceFacts) -> int:
        copies = device.copies
        return 0 if copies is None or copies.small.count < MANY else copies.small.exposed_ns

    def text(device: DeviceFacts) -> str:
        copies = CopyUse() if device.copies is None else device.copies.small
        each = format_bytes(copies.bytes / max(copies.count, 1))
        return (
            f"{format_count(copies.count)} copies under {format_bytes(SMALL_BYTES)} ({each} on "
            "average) took {time}, {share} of {place}, and each may hold up the host: copy once, "
            "or decide on the device"
        )

    return worst(
        facts,
        "many-small-copies",
        "many small copies",
        lost,
        text,
        "memory",
        more=_BY_MEMORY,
        place=lambda device: None if device.copies is None else _place(device.copies.small),
    )


def unified_memory(facts: Facts) -> list[Finding]:
    """Pages of unified memory that migrate while kernels wait for them."""

    def lost(device: DeviceFacts) -> int:
        return 0 if device.copies is None else device.copies.unified.busy_ns

    def text(device: DeviceFacts) -> str:
        size = format_bytes(0 if device.copies is None else device.copies.unified.bytes)
        return (
            f"{size} of unified memory migrated in {{time}}, {{share}} of {{place}}; "
            "cudaMemPrefetchAsync or explicit copies avoid page faults"
        )

    return worst(
        facts,
        "unified-memory",
        "unified memory migrates",
        lost,
        text,
        "memory",
        more=_BY_MEMORY,
        place=lambda device: None if device.copies is None else _place(device.copies.unified),
    )


def _pageable_text(copies: CopyUse) -> str:
    if copies.pageable_ns <= copies.busy_ns / 2:
        return ""
    if copies.pageable == copies.count:
        return ", pageable memory"
    return f", {format_count(copies.pageable)} of them pageable"


def _severity(device: DeviceFacts, copies: CopyUse) -> str:
    """The highest severity of what copies cost: info where they are an upload that is done once."""
    return "info" if copies.once and not device.iterations else "warning"


def _place(copies: CopyUse) -> Place | None:
    return Place(copies.start_ns, copies.duration_ns) if copies.count else None


COPY_CHECKS = (exposed_copies, pageable_copies, many_small_copies, unified_memory)
