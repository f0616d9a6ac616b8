"""Checks on copies: what no kernel hides, pageable memory, small copies, pages that migrate."""

from __future__ import annotations

from collections.abc import Callable

from nsightpy.analysis.findings.copy_use import CopyUse
from nsightpy.analysis.findings.facts import DeviceFacts, Facts, Place
from nsightpy.analysis.findings.worst import Loss, severity_of_use, worst
from nsightpy.analysis.memory.copies import SMALL_BYTES
from nsightpy.results import Finding
from nsightpy.units import counted, format_bytes, format_count, format_time, significant

MANY = 100
_TOWARDS = {
    "h2d": ("from host to device", "copy ahead on another stream"),
    "d2h": ("from device to host", "copy on another stream while kernels run"),
    "d2d": ("and memory sets within or between devices", ""),
}
_ONCE = "; where they happen once, they matter once"
_AROUND = "; what is copied once, before or after the kernels, matters once"
_LESS = {
    "h2d": "keep the data on the device",
    "d2h": "copy less",
    "d2d": "write results in place, or send less to other devices",
}


def exposed_copies(facts: Facts) -> list[Finding]:
    """Copies with no kernel beside them, by direction; what the driver stages counts with them."""
    return [finding for direction in _TOWARDS for finding in _exposed(facts, direction)]


def _exposed(facts: Facts, direction: str) -> list[Finding]:
    way, beside = _TOWARDS[direction]

    def text(device: DeviceFacts, copies: CopyUse, loss: Loss) -> str:
        advice = _LESS[direction]
        if device.kernels.directives and beside:
            advice = "keep the data mapped across regions (target data, enter data)"
        elif not device.iterations:
            advice += _AROUND if copies.once else _ONCE
        elif beside:
            advice += f", or {beside}"
        what = f"calls of small copies {way} took long, with nothing on the GPU"
        if copies.count:
            what = (
                f"{counted(copies.count, 'copy', 'copies')} {way} ({_amount(copies)}"
                f"{_pageable_text(copies)}) ran with no kernel beside them"
            )
            if (inside := device.caused_ns(f"exposed-{direction}")) > copies.exposed_ns / 10:
                what += f", {format_time(inside)} of it inside the calls before they began"
        return f"{what}: {loss}; {advice}"

    return _of_copies(
        facts,
        direction,
        (f"exposed-{direction}", f"copies not overlapped: {way}"),
        lambda device, copies: copies.exposed_ns + device.caused_ns(f"exposed-{direction}"),
        text,
    )


def pageable_copies(facts: Facts) -> list[Finding]:
    """Large copies from or to pageable memory; their time is that of the exposed copies."""

    def text(_: DeviceFacts, copies: CopyUse, loss: Loss) -> str:
        rate = f" at {significant(copies.gb_per_s)} GB/s" if copies.gb_per_s else ""
        return (
            f"{_amount(copies)} in {counted(copies.count, 'copy', 'copies')} came from "
            f"or went to pageable memory{rate}, {loss.of_window}, the same time as "
            "that of the copies not overlapped: pinned memory copies faster, and beside kernels"
        )

    return _of_copies(
        facts,
        "pageable",
        ("pageable-copies", "pageable copies"),
        lambda _, copies: copies.exposed_ns,
        text,
        recoverable=False,
    )


def many_small_copies(facts: Facts) -> list[Finding]:
    """Copies whose number costs, not their bytes."""

    def text(_: DeviceFacts, copies: CopyUse, loss: Loss) -> str:
        each = format_bytes(copies.bytes / max(copies.count, 1))
        return (
            f"{format_count(copies.count)} copies under {format_bytes(SMALL_BYTES)} ({each} on "
            f"average) took {loss}, and each may hold up the host: copy once, "
            "or decide on the device"
        )

    return _of_copies(
        facts,
        "small",
        ("many-small-copies", "many small copies"),
        lambda _, copies: 0 if copies.count < MANY else copies.exposed_ns,
        text,
    )


def unified_memory(facts: Facts) -> list[Finding]:
    """Pages of unified memory that migrate while kernels wait for them."""

    def text(device: DeviceFacts, copies: CopyUse, loss: Loss) -> str:
        idle = device.caused_ns("unified-memory")
        between = f", {format_time(idle)} of it idle before pages that were touched" if idle else ""
        return (
            f"{_amount(copies)} of unified memory migrated in {loss}"
            f"{between}; cudaMemPrefetchAsync or explicit copies avoid page faults"
        )

    return _of_copies(
        facts,
        "unified",
        ("unified-memory", "unified memory migrates"),
        lambda device, copies: copies.busy_ns + device.caused_ns("unified-memory"),
        text,
    )


def _of_copies(
    facts: Facts,
    part: str,
    names: tuple[str, str],
    lost: Callable[[DeviceFacts, CopyUse], int],
    text: Callable[[DeviceFacts, CopyUse, Loss], str],
    *,
    recoverable: bool = True,
) -> list[Finding]:
    """A finding about one part of the copies, by id and name.

    Large copies are `info` at most where they are done once, as an upload is, or for a moment only.
    """

    def use(device: DeviceFacts) -> CopyUse:
        copies: CopyUse = getattr(device.copies, part)
        return copies

    def place(device: DeviceFacts) -> Place | None:
        copies = use(device)
        return Place(copies.start_ns, copies.duration_ns) if copies.count else None

    def most(device: DeviceFacts) -> str:
        if part in ("small", "unified"):
            return "warning"
        once = use(device).once and not device.iterations
        return "info" if once else severity_of_use(device)

    return worst(
        facts,
        *names,
        lambda device: lost(device, use(device)),
        lambda device, loss: text(device, use(device), loss),
        "memory",
        more="--by memory",
        place=place,
        recoverable=recoverable,
        most=most,
    )


def _amount(copies: CopyUse) -> str:
    return format_bytes(copies.bytes) if copies.bytes else "an unknown amount"


def _pageable_text(copies: CopyUse) -> str:
    if copies.pageable_ns <= copies.busy_ns / 2:
        return ""
    if copies.pageable == copies.count:
        return ", pageable memory"
    return f", {format_count(copies.pageable)} of them pageable"


COPY_CHECKS = (exposed_copies, pageable_copies, many_small_copies, unified_memory)
