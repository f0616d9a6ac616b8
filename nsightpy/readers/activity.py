"""What is asked of a report's API calls and GPU work, whatever file they come from."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, distinct_pairs

# Runtime and driver calls by event_class; rows of a third class are calls, too, others repeat one
# to carry its backtrace.
LAST_LAUNCH_CLASS = 1
CALL_CLASSES = (0, LAST_LAUNCH_CLASS, 13)
EVENT_CLASS = "event_class"
LAUNCH_COLUMNS = ("start_ns", "pid", "correlation_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")

# How the functions begin that launch kernels and graphs: CUDA runtime, CUDA driver, HIP.
KERNEL_LAUNCHES = (
    *("cudaLaunch", "cudaGraphLaunch", "cuLaunch", "cuGraphLaunch"),
    *("hipLaunch", "hipGraphLaunch", "hipModuleLaunch", "hipDrvLaunch"),
    *("hipExtLaunch", "hipExtModuleLaunch", "hipHccModuleLaunch"),
)
# Calls that launch work. Others may, too; but most calls of a report do not.
LAUNCHING = (
    *KERNEL_LAUNCHES,
    *(f"{api}{kind}" for api in ("cuda", "cu", "hip") for kind in ("Memcpy", "Memset")),
)
# Copies that are not Async block; freeing memory waits for the device.
SYNCHRONISING = (
    *(f"cuda{kind}Synchronize" for kind in ("Device", "Stream", "Event", "Thread")),
    *(f"cu{kind}Synchronize" for kind in ("Ctx", "Stream", "Event")),
    *(f"hip{kind}Synchronize" for kind in ("Device", "Stream", "Event", "Ctx")),
    *("cudaMemcpy", "cuMemcpy", "hipMemcpy"),
    *("cudaFree", "cuMemFree", "hipFree"),
)


class HostCalls:
    """The API calls of one report, of which `frame` gives columns: of all rows, or of some.

    `every`: all calls count as launching, as those of a trace do.
    """

    def __init__(self, frame: Callable[..., Frame], *, every: bool = False) -> None:
        self._frame = frame
        self._every = every

    @property
    def recorded(self) -> bool:
        """Whether the capture holds any."""
        return self._frame(("start_ns",)).rows > 0

    def launching(self, names: Sequence[str] = LAUNCHING, *, others: bool = False) -> Frame:
        """start_ns, end_ns, pid, tid and correlation_id of runtime and driver calls, by start.

        Calls of functions whose names begin so, or all `others`.
        """
        columns = (*LAUNCH_COLUMNS, "end_ns", "tid")
        if self._every:
            return self._frame(columns, slice(0) if others else None)
        calls = self._frame(("name", EVENT_CLASS))
        launches = calls.ints(EVENT_CLASS) <= LAST_LAUNCH_CLASS
        return self._frame(columns, launches & (_begins(calls, names) != others))

    def synchronising(self) -> Frame:
        """start_ns, end_ns, pid, tid and name of every call that waits for the GPU, by start."""
        calls = self._frame(("name", EVENT_CLASS))
        are_calls = np.isin(calls.ints(EVENT_CLASS), CALL_CLASSES)
        waits = ~calls.labels("name").where(lambda name: "Async" in name)
        return self._frame(CALL_COLUMNS, are_calls & waits & _begins(calls, SYNCHRONISING))


def _begins(calls: Frame, prefixes: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of the calls of functions whose names begin with one of these prefixes."""
    low = tuple(prefix.lower() for prefix in prefixes)
    return calls.labels("name").where(lambda name: name.lower().startswith(low))


@dataclass(frozen=True, slots=True)
class Extent:
    """Where and when a report's GPU work was: pairs (pid, device), ns, number of kernels."""

    places: tuple[tuple[int, int], ...]
    start_ns: int | None
    end_ns: int | None
    kernels: int


def extent_of_frames(kernels: int, frames: Iterable[Frame]) -> Extent:
    """The extent of frames that are loaded anyway (columns pid, device, start_ns, end_ns)."""
    filled = [frame for frame in frames if frame.rows]
    places = {
        device
        for frame in filled
        for device in distinct_pairs(frame.ints("pid"), frame.ints("device"))[0]
    }
    first, last = bounds_of(filled) or (None, None)
    return Extent(tuple(sorted(places)), first, last, kernels)


def bounds_of(frames: Iterable[Frame]) -> tuple[int, int] | None:
    """The first start and the last end of all rows of frames, in ns; None where there are none."""
    filled = [frame for frame in frames if frame.rows]
    if not filled:
        return None
    return (
        min(int(frame.ints("start_ns").min()) for frame in filled),
        max(int(frame.ints("end_ns").max()) for frame in filled),
    )
