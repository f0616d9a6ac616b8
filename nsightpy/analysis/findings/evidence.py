"""The evidence that rules judge: a row for each device, and one for all of a question's reports.

A row is made in one pass from the frames and the work graph of a report; times in ns, sizes in
bytes. What was not recorded is empty: no causes, no groups, None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nsightpy.analysis.findings.thresholds import BEGUN, MOMENT_NS, SHORT_SHARE
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.frames import Ints
from nsightpy.results import Note
from nsightpy.units import counted, format_time


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: start in the report's own time and length, in ns."""

    start_ns: int
    duration_ns: int

    @classmethod
    def worst(cls, starts: Ints, ends: Ints, cost: Ints | None = None) -> Place | None:
        """The one of some intervals that costs most, or lasts longest; None without any."""
        if not len(starts):
            return None
        at = int(np.argmax(ends - starts if cost is None else cost))
        return cls(int(starts[at]), int(ends[at] - starts[at]))


# Threads of a warp, and schedulers of a multiprocessor: each needs one to have work.
WARP, SCHEDULERS = 32, 4
# Compute capability, major: TF32 and BF16 since Ampere; tensor cores since Volta, but for the chips
# of Turing with fewer multiprocessors.
AMPERE, VOLTA, TENSOR_SMS = 8, 7, 28


@dataclass(frozen=True, slots=True)
class Gpu:
    """What must be known of a GPU; 0 where the capture does not say. `ncu`: ncu measures it."""

    sm_count: int = 0
    compute_major: int = 0
    name: str = ""
    ncu: bool = True

    @property
    def has_tensor_cores(self) -> bool:
        """Compute capability 7.0 on, but for the small GPUs of Turing, which have none."""
        few = 0 < self.sm_count < TENSOR_SMS
        return self.compute_major >= VOLTA and not (self.compute_major == VOLTA and few)


@dataclass(frozen=True, slots=True)
class Group:
    """Operations, or time, of a device that share a trait, inside its window.

    `alone_ns` is what they cost: their time with nothing beside that would hide or make up for them
    (kernels beside copies; larger kernels beside small grids). `busy_ns` is their united time,
    `work_ns` the sum of their durations, `edge_ns` what of alone_ns is before the kernels' work
    began or after it ended. `name` is that with the most work, named_ns, or what they are called
    for people; `detail` the blocks or threads of the `worst` one, of copies how many are of
    pageable memory; `also` what else is said of them. `by_name` is the time that others may name,
    too: kernels that matter, or parts.
    """

    busy_ns: int = 0
    alone_ns: int = 0
    work_ns: int = 0
    edge_ns: int = 0
    count: int = 0
    bytes: int = 0
    name: str = ""
    named_ns: int = 0
    detail: int = 0
    also: str = ""
    worst: Place | None = None
    by_name: Mapping[str, int] = field(default_factory=dict)

    @property
    def once(self) -> bool:
        """Whether nearly all of it is before or after the kernels' work: that of one-offs."""
        return 0 < (1 - BEGUN) * self.alone_ns <= self.edge_ns

    @property
    def longest_ns(self) -> int:
        return self.worst.duration_ns if self.worst else 0

    @property
    def mean_ns(self) -> float:
        return self.work_ns / max(self.count, 1)

    @property
    def mean_bytes(self) -> float:
        return self.bytes / max(self.count, 1)

    @property
    def rate(self) -> float:
        """Bytes per ns (decimal GB/s) while busy."""
        return self.bytes / self.busy_ns if self.busy_ns else 0.0


NONE = Group()


@dataclass(frozen=True)
class Evidence:
    """One device of one rank in its window: the steady iterations, or else the whole.

    `groups` are, where large copies are those of 16 KiB or more:

    - kernels, collectives, graphs: compute and communication kernels; CUDA graphs traced as a whole
    - top: the kernels of the name, or of the lambdas of the function, with the most work
    - short: kernels under 10 us; what they and the waits for their launches cost
    - small-grid, tiny-blocks: too few blocks or threads for the multiprocessors; a warp at most
    - fp32-gemm: matrix products in FP32 without tensor cores, on a GPU that has some
    - unaligned: matrix products on tensor cores whose operands are not aligned to 16 bytes
    - elementwise: elementwise and reduction kernels that nothing has fused
    - attention: softmax kernels with a matrix product shortly before and after each
    - exposed-communication: communication with nothing beside it, idle time in MPI included
    - slowed: compute kernels beside communication that take longer than alone
    - h2d, d2h, d2d, small: large copies by direction, memory sets with d2d; those under 16 KiB
    - pageable, unified: large copies from or to pageable memory; pages that migrate
    - launch-bound, host-gap, first-launch, allocation, imbalance: idle time by cause
    - sync-drain: idle time that blocking calls brought about, by the cause that it counts as
    - queued: idle time of what was launched 1 ms or more before it began
    - unknown: idle time that no recorded call explains, before the last launched operation
    - loading: time since code was first loaded, to the steady iterations or the first work
    - slow-collectives, slow-link: what they took beyond the median of their kind, or their link
    - straggler, late: what others waited for this rank, which is late as a rule, or a few times
    - uneven: compute beyond the mean of several devices, as far as another one waits meanwhile

    Times are the report's own; `ahead_ns` more, they are moments on the clock of all ranks. `label`
    is what it is called where its rank says nothing. `causes` is the idle time by cause (empty: not
    known), `names` how many kernels differ, `begun_ns` when a tenth of their work was done, from
    the window's begin. `beside`: most of host-gap lies in intervals that another cause has more
    of. `host` says for people what the host did in host gaps. `iterations` are steady ones (None:
    not known).
    `first_ns` is when the first operation began, `whole_ns` the time from it to the end of the last
    one, `lead_ns` that from the process's first API call to the first operation (None without
    calls), `capture_ns` how long the whole capture lasted. `peak_bytes` is the largest size of live
    memory (0: not recorded), of `memory_bytes`; `traced`: by PyTorch's profiler; `costly`: what the
    profiler adds to each operator, for people.
    """

    rank: int | None
    device: int
    budget: TimeBudget
    gpu: Gpu = field(default_factory=Gpu)
    groups: Mapping[str, Group] = field(default_factory=dict)
    causes: Mapping[str, int] = field(default_factory=dict)
    names: int = 0
    begun_ns: int = 0
    beside: bool = False
    host: str = ""
    iterations: int | None = None
    first_ns: int = 0
    whole_ns: int = 0
    lead_ns: int | None = None
    capture_ns: int = 0
    peak_bytes: int = 0
    memory_bytes: int = 0
    ahead_ns: int = 0
    label: str = ""
    has_ranges: bool = True
    traced: bool = False
    costly: str = ""

    def __getitem__(self, group: str) -> Group:
        return self.groups.get(group, NONE)

    def having(self, groups: Mapping[str, Group], **figures: Any) -> Evidence:
        """The same row with more groups and figures."""
        return replace(self, groups={**self.groups, **groups}, **figures)

    def caused(self, cause: str) -> int:
        """The idle time of one cause, in ns; 0 where causes are not known."""
        return self.causes.get(cause, 0)

    @property
    def window_ns(self) -> int:
        return self.budget.window_ns

    @property
    def name(self) -> str:
        return self.label or (f"device {self.device}" if self.rank is None else f"rank {self.rank}")

    @property
    def window(self) -> str:
        """What the budget covers, in a word: steady or whole."""
        return "whole" if self.iterations is None else "steady"

    @property
    def span(self) -> str:
        """What the budget covers, as it is said to people."""
        if self.iterations is None:
            return f"{self.name}'s window"
        return f"{self.name}'s {counted(self.iterations, 'steady iteration')}"

    def per_iteration(self, time_ns: int) -> str:
        """What a time in the window is per iteration, in brackets; empty without iterations."""
        if not self.iterations:
            return ""
        return f" ({format_time(time_ns / self.iterations)} per iteration)"

    @property
    def short(self) -> bool:
        """Whether the device worked for a moment only, after a long start-up."""
        if self.lead_ns is None:
            return self.whole_ns < MOMENT_NS
        return self.whole_ns < SHORT_SHARE * (self.whole_ns + self.lead_ns)

    @property
    def moment(self) -> bool:
        """Whether what it did may never be done again: one moment, and no iterations."""
        return self.short and self.iterations is None

    @property
    def waits_for_launches(self) -> bool:
        """Whether faster kernels would only wait longer for the next launch, most of the time."""
        return 2 * self.caused("launch-bound") > self.window_ns

    @property
    def late_ns(self) -> int:
        """The time beyond its own until a tenth of the kernels' work is done; 0 where it waits."""
        waits = 2 * self["queued"].alone_ns >= self.begun_ns
        late = self.begun_ns - round(BEGUN * self["kernels"].work_ns)
        return 0 if waits or self.iterations is not None else max(late, 0)

    @property
    def startup(self) -> Group:
        """What of the capture is no steady work, where that is most of it, and where most is."""
        outside = self.capture_ns - (self.window_ns - self.late_ns)
        began, end = self.first_ns - (self.lead_ns or 0), self.budget.end_ns
        before = Place(began, self.budget.start_ns + self.late_ns - began)
        after = Place(end, max(self.first_ns + self.whole_ns - end, 0))
        worst = max(before, after, key=lambda place: place.duration_ns)
        cost = outside if 2 * outside > self.capture_ns else 0
        return Group(alone_ns=cost, worst=worst, by_name={"start-up": cost})


@dataclass(frozen=True)
class JobEvidence:
    """All reports of a question, and the files and options that a next command is about.

    `problems` is what is said of the captures. `host` says what the threads of captures without GPU
    work did, as CPU samples show; `is_part`: a stretch of the time was asked for.
    """

    devices: Sequence[Evidence]
    report: str = "REPORT"
    problems: Sequence[Note] = field(default_factory=tuple)
    options: str = ""
    is_part: bool = False
    host: str = ""
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> list[Evidence]:
        """The devices that did material work: a context on another one is no starved device."""
        least = MATERIAL * max((row.budget.busy_ns for row in self.devices), default=0)
        return [row for row in self.devices if row.window_ns and row.budget.busy_ns > least]

    def texts(self, *kinds: str) -> list[str]:
        """What is said of the captures, of these kinds."""
        return [str(note).removesuffix(".") for note in self.problems if note.kind in kinds]
