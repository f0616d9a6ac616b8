"""What one run is compared by: the time of its unit, its parts, and what ran in it.

Small whatever the size of the run: no events, no names of hosts or users. A baseline file holds
just this.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import msgspec

# What a baseline file may hold as a time in ns: sums of them fit int64.
Time: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**61)]
Count: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=2.0**61)]

# The parts of a unit's time, in the order in which they are shown; they add up to the unit.
PARTS = (
    "compute",
    "exposed communication",
    "copies alone",
    "opaque CUDA graphs",
    "idle: launch-bound",
    "idle: host-gap",
    "idle: sync-drain",
    "idle: first-launch",
    "idle: allocation",
    "idle: exposed-h2d",
    "idle: exposed-d2h",
    "idle: queued",
    "idle: exposed-communication",
    "idle: imbalance",
    "idle: unified-memory",
    "idle: unknown",
)
UNITS = ("step", "repetition", "window", "launch")
# The tools whose reports a run may be, by kind.
KINDS = {"nsys": "Nsight Systems", "torch": "PyTorch traces", "ncu": "Nsight Compute"}
SECTIONS = ("kernel", "collective", "range")
# What kernels compute: made of them where runs are compared.
CATEGORY = "category"


@dataclass(frozen=True, slots=True)
class WorkSummary:
    """One kernel, collective or range in one unit of a run, over its devices on average.

    `count` launches took `total_ns` together; `samples` are the totals of single units, in ns,
    empty where there is one only. `figures` are what ncu measured, by name.
    """

    section: str
    name: str
    count: Count
    total_ns: Time
    samples: tuple[Time, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnitSummary:
    """One unit of a run: `duration_ns` is that of its median one, which `parts` add up to.

    `parts` are in the order of PARTS. Of `count` units, `samples` are some: the duration and the
    parts of each, in ns. `works` is what ran in the unit; `order` are the places of kernels among
    them in the order in which one unit launched them, on one device, as far as it is kept.
    """

    duration_ns: Time
    parts: tuple[Time, ...]
    count: int
    samples: tuple[tuple[Time, ...], ...] = ()
    works: tuple[WorkSummary, ...] = ()
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run: `kind` is one of KINDS, `name` its file or folder.

    `units` by name (see UNITS): the steps where it has any, what repeats but is no step, and the
    window of the capture; a launch for reports of ncu. `circumstances` are what it ran on and
    with. `notes` are what must be known.
    """

    kind: str
    name: str
    units: Mapping[str, UnitSummary]
    circumstances: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


# Counts up whenever what an older nsightpy would make of a file would be wrong.
BASELINE_SCHEMA = "nsightpy.baseline/1"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the runs of one side took, as a file, and the parts that their units divide into."""

    schema: str = BASELINE_SCHEMA
    parts: tuple[str, ...] = PARTS
    runs: tuple[RunSummary, ...] = ()
