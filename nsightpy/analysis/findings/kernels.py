"""Checks on the kernels that ran: how large, how well they fill the GPU, which of them matter."""

from __future__ import annotations

from collections.abc import Callable

from nsightpy.analysis.findings.facts import DeviceFacts, Facts, Place
from nsightpy.analysis.findings.kernel_use import SHORT_NS, WARP, Part
from nsightpy.analysis.findings.worst import (
    Loss,
    finding_of,
    percent_text,
    severity_of_use,
    worst,
)
from nsightpy.names import brief_kernel
from nsightpy.results import Finding
from nsightpy.units import counted, format_count, format_time

MANY = 100
# So many streams are meant to work side by side.
SEVERAL = 3
DOMINANT_SHARE = 0.25
ELEMENTWISE_SHARE = 0.20


def small_kernels(facts: Facts) -> list[Finding]:
    """Many kernels so short that launching them costs about as much as running them."""

    def lost(device: DeviceFacts) -> int:
        use = device.kernels
        return 0 if use.short.launches < max(MANY, use.launches / 2) else device.short_cost_ns

    def text(device: DeviceFacts, loss: Loss) -> str:
        use = device.kernels
        advice = "they run in CUDA graphs: fuse them"
        if not device.in_graphs:
            advice = "fuse them, or launch them as a CUDA graph"
        return (
            f"{format_count(use.short.launches)} of {format_count(use.launches)} kernels ran for "
            f"less than {format_time(SHORT_NS)}; they and the waits for their launches took up to "
            f"{loss}: {advice}"
        )

    return worst(
        facts, "small-kernels", "small kernels", lost, text, "launches", place=_where("short")
    )


def small_grid(facts: Facts) -> list[Finding]:
    """Kernels with fewer blocks than the GPU has multiprocessors."""

    def text(device: DeviceFacts, loss: Loss) -> str:
        part = device.kernels.small_grid
        return (
            f"{counted(part.launches, 'kernel', 'kernels')} with too few blocks or threads for "
            f"the {device.gpu.sm_count} multiprocessors ran for {loss}; "
            f"most of it {brief_kernel(part.name)} with {part.detail} block(s): more, smaller "
            "blocks, or independent kernels side by side, would use the rest of the GPU"
        )

    def most(device: DeviceFacts) -> str:
        return _severity_of_part(device, device.kernels.small_grid.work_ns)

    return _of_kernels(facts, "small-grid", "small grids", "small_grid", text, most)


def tiny_blocks(facts: Facts) -> list[Finding]:
    """Blocks of at most a warp in kernels that matter."""

    def text(device: DeviceFacts, loss: Loss) -> str:
        part = device.kernels.tiny_block
        return (
            f"{counted(part.launches, 'kernel', 'kernels')} with blocks of at most {WARP} threads "
            f"ran for {loss}; most of it {brief_kernel(part.name)} with "
            f"{part.detail} thread(s) a block: the blocks that fit on a multiprocessor at a time "
            "do not fill it"
        )

    def most(device: DeviceFacts) -> str:
        return _severity_of_part(device, device.kernels.tiny_block.named_ns)

    return _of_kernels(facts, "tiny-blocks", "tiny blocks", "tiny_block", text, most)


def fp32_gemm(facts: Facts) -> list[Finding]:
    """Matrix products in FP32 on a GPU with tensor cores."""

    def text(device: DeviceFacts, loss: Loss) -> str:
        part = device.kernels.fp32_gemm
        share = percent_text(part.work_ns / device.kernels.work_ns)
        precision = "TF32 or BF16" if device.gpu.compute_major >= 8 else "FP16"
        return (
            f"matrix products ran in FP32 without tensor cores (most in {brief_kernel(part.name)}; "
            f"all of them {share} of the kernels' time): {loss}; "
            f"{precision} would use them, where its precision is enough"
        )

    return _of_kernels(facts, "fp32-gemm", "FP32 matrix products", "fp32_gemm", text)


def unfused_elementwise(facts: Facts) -> list[Finding]:
    """A large part of the kernels' time in single elementwise steps and reductions."""

    def lost(device: DeviceFacts) -> int:
        use = device.kernels
        few = use.elementwise.work_ns < ELEMENTWISE_SHARE * use.work_ns
        return 0 if few else use.elementwise.busy_ns

    def text(device: DeviceFacts, loss: Loss) -> str:
        use = device.kernels
        share = percent_text(use.elementwise.work_ns / use.work_ns)
        return (
            f"elementwise and reduction kernels have {share} of the kernels' time: {loss}; "
            "fused (torch.compile, jax.jit, cupy.fuse, "
            "fused norms and optimisers) they would read and write memory less often"
        )

    return worst(
        facts,
        "unfused-elementwise",
        "unfused elementwise kernels",
        lost,
        text,
        "kernels",
        place=_where("elementwise"),
    )


def dominating_kernel(facts: Facts) -> list[Finding]:
    """One kernel that decides how long the window takes, or else the kernels of one function."""
    dominating = []
    for device in facts.used:
        use = device.kernels
        if use.names < 2 and severity_of_use(device) == "info":
            continue
        if use.top.busy_ns >= DOMINANT_SHARE * device.budget.window_ns:
            dominating.append((use.top.busy_ns / device.budget.window_ns, device))
    if dominating:
        _, device = max(dominating, key=lambda case: case[0])
        top = device.kernels.top
        ran = Loss(device, top.busy_ns)
        text = f"one kernel ran for {ran}: {brief_kernel(top.name)}, "
        return [_dominating(facts, "dominating kernel", ran, top, text, kernel=top.name)]
    for device in facts.used:
        family = device.kernels.family
        if family.busy_ns >= DOMINANT_SHARE * device.budget.window_ns:
            ran = Loss(device, family.busy_ns)
            text = f"the kernels made in {family.name} ran for {ran}: "
            return [_dominating(facts, "dominating kernels", ran, family, text)]
    return []


def _dominating(
    facts: Facts, name: str, ran: Loss, part: Part, text: str, kernel: str = ""
) -> Finding:
    device = ran.device
    share = percent_text(part.work_ns / device.kernels.work_ns)
    profiler = "ncu" if device.gpu.ncu else "a kernel profiler of the GPU's maker"
    return finding_of(
        "dominating-kernel",
        name,
        ran,
        f"{text}{counted(part.launches, 'launch', 'launches')}, {share} of the kernels' time; "
        f"{profiler} says how much of it could be saved",
        facts.command("select" if device.gpu.ncu else "kernels"),
        place=Place(part.start_ns, part.duration_ns),
        recoverable=False,
        most=severity_of_use(device),
        kernel=kernel,
    )


def serialised_streams(facts: Facts) -> list[Finding]:
    """Kernels on several streams that could have run side by side and never did."""

    def lost(device: DeviceFacts) -> int:
        if device.kernels.serial.busy_ns or device.in_turn < SEVERAL:
            return device.kernels.serial.busy_ns
        return min(device.budget.copy_only_ns, device.budget.compute_ns)

    def text(device: DeviceFacts, loss: Loss) -> str:
        if not device.kernels.serial.busy_ns:
            return (
                f"copies and kernels ran on {device.in_turn} streams and never two at a time; side "
                f"by side they would hide up to {loss}: pinned memory, and no "
                "calls that wait between them"
            )
        return (
            "kernels that leave most of the GPU free followed one another on "
            f"{device.kernels.serial_streams} streams, never two at a time: "
            f"{loss}"
        )

    return worst(
        facts,
        "serialised-streams",
        "streams without overlap",
        lost,
        text,
        "launches" if facts.has_calls else "kernels",
        more="--by stream",
        place=lambda device: _where("serial")(device) or _where("top")(device),
        recoverable=False,
        most=lambda _: "info",
    )


def _severity_of_part(device: DeviceFacts, part_ns: int) -> str:
    """How severe kernels of a kind may be called: they matter where they are much of the work."""
    few = part_ns < DOMINANT_SHARE * device.kernels.work_ns
    return "info" if few else severity_of_use(device)


def _of_kernels(
    facts: Facts,
    identifier: str,
    name: str,
    trait: str,
    text: Callable[[DeviceFacts, Loss], str],
    most: Callable[[DeviceFacts], str] = severity_of_use,
) -> list[Finding]:
    return worst(
        facts,
        identifier,
        name,
        lambda device: _part(device, trait).busy_ns,
        text,
        "kernels",
        more="--by grid" if trait in ("small_grid", "tiny_block") else "",
        place=_where(trait),
        recoverable=False,
        most=most,
        kernel=lambda device: _part(device, trait).name,
    )


def _part(device: DeviceFacts, trait: str) -> Part:
    part: Part = getattr(device.kernels, trait)
    return part


def _where(trait: str) -> Callable[[DeviceFacts], Place | None]:
    def place(device: DeviceFacts) -> Place | None:
        part = _part(device, trait)
        return Place(part.start_ns, part.duration_ns) if part.launches else None

    return place


KERNEL_CHECKS = (
    fp32_gemm,
    small_kernels,
    small_grid,
    tiny_blocks,
    unfused_elementwise,
    dominating_kernel,
    serialised_streams,
)
