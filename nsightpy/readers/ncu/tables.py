"""From single values to the frames of an Nsight Compute report, whichever way they came in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nsightpy.frames import LAUNCHES, RULES, ColumnData, Frame, Labels, Schema
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


@dataclass
class MetricColumns:
    """Metrics, value by value: names, units and texts once each."""

    launch: list[int] = field(default_factory=list)
    metric: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    unit: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    metrics: dict[str, int] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=lambda: {"": 0})

    def add(self, launch: int, metric: str, value: float, unit: str, text: str = "") -> None:
        """One value, or with NaN the text of a metric that is a text."""
        self.launch.append(launch)
        self.metric.append(self.metrics.setdefault(metric, len(self.metrics)))
        self.value.append(value)
        self.unit.append(self.units.setdefault(unit, len(self.units)))
        self.text.append(self.texts.setdefault(text, len(self.texts)) if text else 0)

    def frame(self) -> Frame:
        """The frame of METRICS."""
        return Frame(
            {
                "launch": np.asarray(self.launch, dtype=np.int64),
                "metric": _labels(self.metric, self.metrics),
                "value": np.asarray(self.value, dtype=np.float64),
                "unit": _labels(self.unit, self.units),
                "text": _labels(self.text, self.texts),
            }
        )


def launches_frame(launches: list[tuple[Launch, Mapping[str, float], str]]) -> Frame:
    """The frame of LAUNCHES: each result with its metrics and the name of its GPU."""
    rows = [_row(launch, metrics, gpu) for launch, metrics, gpu in launches]
    return _framed(LAUNCHES, rows)


def rules_frame(rules: list[Rule]) -> Frame:
    """The frame of RULES."""
    return _framed(RULES, [rule._asdict() for rule in rules])


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


def base_of(name: str) -> str:
    """The function name that ncu calls `function`: no namespaces, template arguments, types."""
    plain = function_name(name)
    return plain.rsplit("::", 1)[-1].strip() or plain


def nvtx_text(stacks: Mapping[str, list[str]]) -> str:
    """Open ranges by domain, outermost first, as "A/B, C@domain"."""
    return ", ".join(
        "/".join(ranges) + ("" if domain == DEFAULT_DOMAIN else f"@{domain}")
        for domain, ranges in sorted(stacks.items())
        if ranges
    )


def plain_message(text: str) -> str:
    """A rule's message without markup: links and references to sections become their text."""
    text = _LINK.sub(_link_text, text)
    return " ".join(text.split())


def _link_text(match: re.Match[str]) -> str:
    kind, body = match[1], match[2]
    if kind == "section":
        return body.partition(":")[2] or body
    return body


def _row(launch: Launch, metrics: Mapping[str, float], gpu: str) -> dict[str, object]:
    grid = launch.grid or _dimensions(metrics, "grid")
    block = launch.block or _dimensions(metrics, "block")
    major, _, minor = launch.capability.partition(".")
    time = duration_ns(metrics)
    return {
        "launch": launch.number,
        "name": launch.name,
        "base_name": launch.base_name or base_of(launch.name),
        "mangled_name": launch.mangled_name,
        **{f"grid_{axis}": size for axis, size in zip("xyz", grid, strict=True)},
        **{f"block_{axis}": size for axis, size in zip("xyz", block, strict=True)},
        "blocks": _fitting(math.prod(grid)) or _counted(metrics, "launch__grid_size"),
        "threads_per_block": _fitting(math.prod(block)) or _counted(metrics, "launch__block_size"),
        "device": _id(launch.device, metrics, "launch__device_id"),
        "context": _id(launch.context, metrics, "launch__context_id"),
        "stream": _id(launch.stream, metrics, "launch__stream_id"),
        "pid": launch.pid,
        "process": launch.process,
        "gpu": gpu,
        "compute_major": int(major) if major else _counted(metrics, f"{CAPABILITY}major"),
        "compute_minor": int(minor) if minor else _counted(metrics, f"{CAPABILITY}minor"),
        "nvtx": launch.nvtx,
        "duration_ns": -1 if time is None else time,
    }


def _dimensions(metrics: Mapping[str, float], shape: str) -> tuple[int, ...]:
    sizes = tuple(_counted(metrics, f"launch__{shape}_dim_{axis}") for axis in "xyz")
    return sizes if all(sizes) else (0, 0, 0)


def _id(given: int | None, metrics: Mapping[str, float], metric: str) -> int:
    return _counted(metrics, metric, -1) if given is None else given


def _counted(metrics: Mapping[str, float], metric: str, missing: int = 0) -> int:
    value = _whole(metrics.get(metric, missing))
    return missing if value is None else value


def _fitting(value: int) -> int:
    return value if value < LARGEST else 0


def _framed(schema: Schema, rows: list[dict[str, object]]) -> Frame:
    columns: dict[str, ColumnData] = {}
    for column in schema.columns:
        values = [row[column.name] for row in rows]
        if column.kind == "label":
            columns[column.name] = Labels.of(map(str, values))
        elif column.kind == "float":
            columns[column.name] = np.asarray(values, dtype=np.float64)
        else:
            columns[column.name] = np.asarray(values, dtype=np.int64)
    return Frame(columns)


def _labels(codes: list[int], values: Mapping[str, int]) -> Labels:
    return Labels(np.asarray(codes, dtype=np.int32), tuple(values))
