"""What the streams of a simulated device waited for, operation by operation, in ns."""

from collections.abc import Iterable

from simulator.clocks import Clock
from simulator.rank import Operation, Rank

KERNEL_WAIT_NS = 30_000


def idle_truth(
    clock: Clock, rank: Rank, placed: list[Operation], lost: Iterable[int] = ()
) -> dict[str, int] | None:
    """The stream waits of one rank, ns; None where graphs hide what happened.

    `placed` are the rank's operations in report time, `lost` the calls that the report lacks.
    """
    if any(op.role == "graph" for op in placed) or not placed:
        return None
    hidden = set(lost)
    starts = clock.host([call.start for call in rank.calls]).tolist()
    launch = {
        call.correlation: start
        for call, start in zip(rank.calls, starts, strict=True)
        if call.correlation not in hidden
    }
    return _stream_waits(placed, launch)


def _stream_waits(placed: list[Operation], launch: dict[int, int]) -> dict[str, int]:
    waits = {"host_wait_ns": 0, "kernel_wait_ns": 0, "other_wait_ns": 0}
    for stream in {op.stream for op in placed}:
        reached: int | None = None
        for op in sorted((op for op in placed if op.stream == stream), key=lambda op: op.start):
            gap = 0 if reached is None else op.start - reached
            if gap > 0 and reached is not None:
                called = launch.get(op.correlation)
                if called is not None and called > reached:
                    waits["host_wait_ns"] += gap
                elif gap < KERNEL_WAIT_NS:
                    waits["kernel_wait_ns"] += gap
                else:
                    waits["other_wait_ns"] += gap
            reached = op.end if reached is None else max(reached, op.end)
    return waits
