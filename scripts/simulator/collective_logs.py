"""Jobs at the level of their collective logs: many ranks in seconds, with a known truth.

Only what decides about clocks and groups is simulated: compute between collectives, waiting for
the last of a group, jitter of the ends, and clocks that disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.clocks import Clock, ClockFit
from nsightpy.analysis.collectives.log import CollectiveLog, Kind

UTC_NS = 1_750_000_000_000_000_000
BEGIN_NS = 500_000_000
KINDS = ("tensor", "expert", "data", "pipeline", "world")
STREAMS = {kind: 21 + 4 * place for place, kind in enumerate(KINDS)}
MIB = 1 << 20
Name = tuple[str, str, int]  # kind, operation, bytes


@dataclass(frozen=True)
class CollectiveJob:
    """A job's layout, program and clocks; times in ns, all drawn from `seed`.

    Ranks are numbered along the axes of `order`, the first one running fastest: t(ensor),
    e(xpert), d(ata: replicas of an expert group), p(ipeline). A data group spans e and d.
    Clocks of hosts differ by up to `host_error_ns`, of a host's processes by `process_error_ns`.
    """

    seed: int = 1
    tensor: int = 2
    expert: int = 1
    data: int = 4
    pipeline: int = 1
    order: str = "tedp"
    ranks_per_host: int = 4
    iterations: int = 5
    layers: int = 3
    buckets: int = 2
    sharded: int = 0  # blocking gathers of the data group per layer
    tensor_sums: bool = True
    microbatches: int = 2
    world_sums: bool = False
    payload: bool = True
    jitter_ns: float = 500.0
    host_error_ns: int = 4_000_000
    process_error_ns: int = 5_000

    @property
    def ranks(self) -> int:
        return self.tensor * self.expert * self.data * self.pipeline

    def along(self, axes: str) -> np.ndarray:
        """The number of each rank's group along some axes."""
        sizes = {"t": self.tensor, "e": self.expert, "d": self.data, "p": self.pipeline}
        rank, number, inner = np.arange(self.ranks), np.zeros(self.ranks, dtype=np.int64), 1
        for axis in self.order:
            if axis not in axes:
                number += rank % sizes[axis] * inner
                inner *= sizes[axis]
            rank = rank // sizes[axis]
        return number

    def groups(self) -> dict[str, np.ndarray]:
        """The number of each rank's group, by kind; kinds that bring nobody together are not."""
        found = {"tensor": self.along("t"), "expert": self.along("e"), "data": self.along("ed")}
        if self.world_sums:
            found["world"] = np.zeros(self.ranks, dtype=np.int64)
        return {kind: own for kind, own in found.items() if len(np.unique(own)) < self.ranks}


class CollectiveRun:
    """What happened: rows of ranks, names, starts, ends and sequences; names by what they mean."""

    def __init__(self, job: CollectiveJob) -> None:
        self.job, self.groups = job, job.groups()
        self.random = np.random.default_rng([job.seed, 77])
        self.ready = BEGIN_NS + self.random.integers(0, 400_000, job.ranks).astype(np.float64)
        self.free = {kind: self.ready.copy() for kind in KINDS}
        self.counts: dict[tuple[str, str], np.ndarray] = {}
        self.rows: list[tuple[np.ndarray, ...]] = []
        self.names: dict[Name, int] = {}
        for _ in range(job.iterations):
            self.iterate()

    def iterate(self) -> None:
        """Load, forward and backward through the stages, sum the gradients."""
        job, everybody = self.job, np.arange(self.job.ranks)
        self.compute(everybody, 1_200_000, 0.06)
        stage = job.along("ted")
        stages = [np.flatnonzero(stage == one) for one in range(job.pipeline)]
        for order in (stages, stages[::-1]):
            for batch in range(job.microbatches):
                for place, members in enumerate(order):
                    if place:
                        self.hand_over(order[place - 1], members)
                    self.layers(members, last=order is not stages and batch == job.microbatches - 1)
        self.ready = np.maximum(self.ready, self.free["data"])
        self.compute(everybody, 60_000, 0.02)
        self.collective(everybody, "world", "AllReduce", 4, 9_000)

    def layers(self, members: np.ndarray, last: bool) -> None:
        """A microbatch in one stage; gradients are summed beside the last backward pass."""
        for layer in range(self.job.layers):
            for _ in range(self.job.sharded):
                self.collective(members, "data", "AllGather", 4 * MIB, 30_000)
                self.compute(members, 25_000, 0.05)
            self.compute(members, 90_000, 0.03)
            if self.job.tensor_sums:
                self.collective(members, "tensor", "AllReduce", 16 * MIB, 70_000)
            if "expert" in self.groups:
                self.collective(members, "expert", "AllToAll", 8 * MIB, 45_000)
                self.compute(members, 40_000, 0.03)
                self.collective(members, "expert", "AllToAll", 8 * MIB, 45_000)
            self.compute(members, 120_000, 0.03)
            self.collective(members, "tensor", "AllReduce", 16 * MIB, 70_000)
            if last and layer < self.job.buckets:
                self.collective(members, "data", "AllReduce", 32 * MIB, 300_000, waits=False)

    def compute(self, members: np.ndarray, usual_ns: int, noise: float) -> None:
        factor = 1.0 + noise * np.abs(self.random.normal(size=len(members)))
        self.ready[members] += usual_ns * factor

    def hand_over(self, senders: np.ndarray, members: np.ndarray) -> None:
        """Activations from one stage to the next; both sides are point to point."""
        begin = np.maximum(self.ready[senders], self.ready[members])
        end = begin + 40_000 + self.random.exponential(3_000, len(members))
        for side, operation in ((senders, "Send"), (members, "Recv")):
            self.note(side, ("pipeline", operation, 16 * MIB), self.ready[side], end)
        self.ready[senders] = np.maximum(self.ready[senders], begin + 5_000)
        self.ready[members] = end

    def collective(
        self, members: np.ndarray, kind: str, operation: str, size: int, ns: int, waits: bool = True
    ) -> None:
        """One collective of every group of a kind; ends are common but for jitter."""
        if kind not in self.groups:
            return
        group = self.groups[kind][members]
        start = np.maximum(self.ready[members], self.free[kind][members]) + 1_500
        start += self.random.exponential(300, len(members))
        last = np.full(int(group.max()) + 1, -np.inf)
        np.maximum.at(last, group, start)
        end = last[group] + ns + self.random.normal(0.0, self.job.jitter_ns, len(members))
        end = np.maximum(end, last[group] + 1_000)
        self.free[kind][members] = end
        if waits:
            self.ready[members] = end
        self.note(members, (kind, operation, size), start, end)

    def note(self, ranks: np.ndarray, name: Name, start: np.ndarray, end: np.ndarray) -> None:
        """Write rows down, each with its number among its rank's operations of that kind."""
        code = self.names.setdefault(name, len(self.names))
        count = self.counts.setdefault(name[:2], np.zeros(self.job.ranks, np.int64))
        codes = np.full(len(ranks), code)
        self.rows.append((ranks, codes, np.rint(start), np.rint(end), count[ranks]))
        count[ranks] += 1

    def kind(self, rank: int, name: Name) -> Kind:
        """What the reader of a rank's report would say of an operation."""
        kind, operation, size = name
        group, members = "", 0
        if not self.job.payload:
            size = -1
        elif kind == "pipeline":
            group, members = f"p{self.job.along('p')[rank]}", self.job.pipeline
        else:
            own = self.groups[kind]
            group, members = f"{kind}{own[rank]}", int(np.count_nonzero(own == own[rank]))
        return Kind(100 + rank, 0, STREAMS[kind], operation, "bf16", group, members, -1, size, -1)


@dataclass(frozen=True)
class CollectiveLogs:
    """The logs of a job as reports have them, and the truth about clocks and groups.

    `offsets_ns` is how far each clock is ahead of the first one at the capture's middle.
    """

    clocks: list[Clock]
    logs: list[CollectiveLog]
    offsets_ns: np.ndarray
    groups: set[tuple[int, ...]]
    middle_ns: int

    def sets(self) -> np.ndarray:
        """The first rank of the set that each rank is in: whom groups join, directly or not."""
        found, before = np.arange(len(self.clocks)), np.empty(0, dtype=np.int64)
        while not np.array_equal(before, found):
            before = found.copy()
            for members in map(list, self.groups):
                found[members] = found[members].min()
        return found

    def worst_ns(self, fits: Sequence[ClockFit]) -> float:
        """The largest error within any set of ranks that groups join."""
        errors, sets = self.signed(fits), self.sets()
        parts = (errors[sets == one] for one in np.unique(sets))
        return max(float(np.abs(part - np.median(part)).max()) for part in parts)

    def signed(self, fits: Sequence[ClockFit]) -> np.ndarray:
        """How far aligned times are from the truth at the capture's middle, by clock."""
        errors = []
        for fit, clock, offset in zip(fits, self.clocks, self.offsets_ns, strict=True):
            here = np.asarray([self.middle_ns], dtype=np.int64)
            shown = here + UTC_NS - ((clock.utc_ns or 0) - clock.shift_ns) + offset
            errors.append(int(fit.to_aligned(shown)[0]) - UTC_NS - self.middle_ns)
        return np.asarray(errors, dtype=np.float64)

    def errors_ns(self, fits: Sequence[ClockFit]) -> np.ndarray:
        """The size of the errors against the first clock's."""
        found = self.signed(fits)
        return np.asarray(np.abs(found - found[0]))


def simulate_logs(job: CollectiveJob) -> CollectiveLogs:
    """Run a job and let every rank write its log by its own clock."""
    run = CollectiveRun(job)
    random = np.random.default_rng([job.seed, 78])
    host = np.arange(job.ranks) // job.ranks_per_host
    hosts = int(host.max()) + 1
    host_error = random.integers(-job.host_error_ns, job.host_error_ns + 1, hosts)
    own_error = random.integers(-job.process_error_ns, job.process_error_ns + 1, job.ranks)
    begun = random.integers(0, 50_000_000, job.ranks)
    error = host_error[host] + own_error
    error -= error[0]
    columns = [np.concatenate(column) for column in zip(*run.rows, strict=True)]
    middle = int((columns[2].min() + columns[3].max()) // 2)
    order = np.lexsort((columns[2], columns[0]))
    ranks, code, start, end, sequence = (column[order] for column in columns)
    edges = np.searchsorted(ranks, np.arange(job.ranks + 1))
    names, clocks, logs = list(run.names), [], []
    for rank in range(job.ranks):
        own, ahead = slice(int(edges[rank]), int(edges[rank + 1])), int(begun[rank])
        shift = int(error[rank]) - ahead
        starts, ends = (column[own].astype(np.int64) + shift for column in (start, end))
        present, codes = np.unique(code[own], return_inverse=True)
        kinds = tuple(run.kind(rank, names[name]) for name in present.tolist())
        sequences = sequence[own].astype(np.int64) if job.payload else None
        shown = np.ones(len(codes), dtype=np.bool_)
        logs.append(CollectiveLog(kinds, codes.astype(np.int32), starts, ends, sequences, shown))
        name, utc = f"node{host[rank]}", UTC_NS + ahead
        clocks.append(Clock(f"r{rank}", 100 + rank, rank, name, utc, None, 0, f"s{rank}"))
    truth = {
        tuple(np.flatnonzero(own == group).tolist())
        for own in run.groups.values()
        for group in np.unique(own).tolist()
    }
    return CollectiveLogs(clocks, logs, error, {g for g in truth if len(g) > 1}, middle)
