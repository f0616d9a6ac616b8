"""From single values to the frames of an Nsight Compute report, whichever way they came in."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nsightpy.frames import LAUNCHES, Frame
from nsightpy.names import function_name

GPU = "device__attribute_display_name"
CAPABILITY = "device__attribute_compute_capability_"
LARGEST = 2**62
DEFAULT_DOMAIN = "<default domain>"
# @section:<id>:<text>@, @url:<text>:<address>@
_LINK = re.compile(r"@([a-z]+):((?:[^@:]|:(?!//))*?):?(https?:[^@]*)?@")


class Launch(NamedTuple):
    """What identifies a result; the rest of its row comes from its metrics."""

    number: int
    name: str
    base_name: str = ""
    mangled_name: str = ""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    device: int | None = None
    context: int | None = None
    stream: int | None = None
    pid: int = 0
    process: str = ""
    capability: str = ""
    nvtx: str = ""


class Metric(NamedTuple):
    """One value of a result, or with NaN the text of a metric that is a text; as in METRICS."""

    launch: int
    metric: str
    value: float
    unit: str = ""
    text: str = ""


class Rule(NamedTuple):
    """One message of one of ncu's rules; columns as in frames.RULES."""

    launch: int
    rule: str
    section: str
    type: str
    title: str
    message: str
    speedup_pct: float = math.nan
    speedup_scope: str = ""


@dataclass(frozen=True)
class NcuTables:
    """The frames of one report, the ncu that made it ("" unknown), and what to know about them."""

    launches: Frame
    metrics: Frame
    rules: Frame
    tool_version: str = ""
    notes: tuple[str, ...] = ()


def launches_frame(launches: Iterable[Launch], metrics: Iterable[Metric]) -> Frame:
    """The frame of LAUNCHES: each result with what its metrics tell."""
    numbers: dict[int, dict[str, float]] = defaultdict(dict)
    gpus: dict[int, str] = {}
    for launch, metric, value, _, text in metrics:
        if not math.isnan(value):
            numbers[launch][metric] = value
        elif metric == GPU:
            gpus[launch] = text
    rows = [_row(each, numbers[each.number], gpus.get(each.number, "")) for each in launches]
    return Frame.of_rows(LAUNCHES, [[row[name] for name in LAUNCHES.names] for row in rows])


def duration_ns(metrics: Mapping[str, float]) -> int | None:
    """How long the result took under the profiler; from the cycles where it was not measured."""
    measured = metrics.get("gpu__time_duration.sum")
    if measured is not None:
        return _whole(measured)
    for cycles, rate in (
        ("sm__cycles_elapsed.avg", "sm__cycles_elapsed.avg.per_second"),
        ("gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg.per_second"),
    ):
        if metrics.get(cycles) and metrics.get(rate):
            return _whole(metrics[cycles] / metrics[rate] * 1e9)
    return None


def _whole(value: float) -> int | None:
    """A whole number that fits a column; None for what damage left behind."""
    return round(value) if abs(value) < LARGEST else None


def stable_unit(metric: str, unit: str) -> str:
    """The unit of a count as its metric's name has it.

    ncu_report says "thread" or "inst" of the same instructions, and "byte" or "sector" of the same
    sectors, depending on which other reports the process has loaded before.
    """
    counted, slash, per = unit.partition("/")
    if counted == "thread" and "_inst_" in metric:
        counted = "inst"
    elif counted == "byte" and "_sectors_" in metric:
        counted = "sector"
    return f"{counted}{slash}{per}"


def nvtx_text(stacks: Mapping[str, list[str]]) -> str:
    """Open ranges by domain, outermost first, as "A/B, C@domain"."""
    return ", ".join(
        "/".join(ranges) + ("" if domain == DEFAULT_DOMAIN else f"@{domain}")
        for domain, ranges in sorted(stacks.items())
        if ranges
    )


def plain_message(text: str) -> str:
    """A rule's message without markup: links and references to sections become their text."""

    def text_of(link: re.Match[str]) -> str:
        kind, body = link[1], link[2]
        return body.partition(":")[2] or body if kind == "section" else body

    return " ".join(_LINK.sub(text_of, text).split())


def _row(launch: Launch, metrics: Mapping[str, float], gpu: str) -> dict[str, object]:
    def counted(metric: str, missing: int = 0) -> int:
        value = _whole(metrics.get(metric, missing))
        return missing if value is None else value

    shapes: dict[str, int] = {}
    for shape, size, given in (
        ("grid", "launch__grid_size", launch.grid),
        ("block", "launch__block_size", launch.block),
    ):
        sizes = given or tuple(counted(f"launch__{shape}_dim_{axis}") for axis in "xyz")
        sizes = sizes if given or all(sizes) else (0, 0, 0)
        shapes |= {f"{shape}_{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
        total = math.prod(sizes)
        name = "blocks" if shape == "grid" else "threads_per_block"
        shapes[name] = (total if total < LARGEST else 0) or counted(size)
    ids = {"device": launch.device, "context": launch.context, "stream": launch.stream}
    major, _, minor = launch.capability.partition(".")
    time = duration_ns(metrics)
    plain = function_name(launch.name)
    return {
        "launch": launch.number,
        "name": launch.name,
        # without namespaces, template arguments and types, as ncu's `function`
        "base_name": launch.base_name or plain.rsplit("::", 1)[-1].strip() or plain,
        "mangled_name": launch.mangled_name,
        **shapes,
        **{n: counted(f"launch__{n}_id", -1) if i is None else i for n, i in ids.items()},
        "pid": launch.pid,
        "process": launch.process,
        "gpu": gpu,
        "compute_major": int(major) if major else counted(f"{CAPABILITY}major"),
        "compute_minor": int(minor) if minor else counted(f"{CAPABILITY}minor"),
        "nvtx": launch.nvtx,
        "duration_ns": -1 if time is None else time,
    }
