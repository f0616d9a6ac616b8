"""What is asked of a report's API calls, whatever file they come from; answers from their frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame

# Runtime and driver calls by event_class; rows of a third class are calls, too, others repeat one
# to carry its backtrace.
LAST_LAUNCH_CLASS = 1
CALL_CLASSES = (0, LAST_LAUNCH_CLASS, 13)
LAUNCH_COLUMNS = ("start_ns", "pid", "correlation_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")
# All are read at once: one query of a small export answers every question.
_READ = (*CALL_COLUMNS, "correlation_id", "event_class")

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
ORDERING = (*LAUNCHING, "cudaEventRecord", "cuEventRecord", "hipEventRecord")
# Copies that are not Async block; freeing memory waits for the device.
SYNCHRONISING = (
    *(f"cuda{kind}Synchronize" for kind in ("Device", "Stream", "Event", "Thread")),
    *(f"cu{kind}Synchronize" for kind in ("Ctx", "Stream", "Event")),
    *(f"hip{kind}Synchronize" for kind in ("Device", "Stream", "Event", "Ctx")),
    *("cudaMemcpy", "cuMemcpy", "hipMemcpy"),
    *("cudaFree", "cuMemFree", "hipFree"),
)
# What each of these costs is small; before every launch it adds up.
ALLOCATING = (
    *("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cudaHostUnregister"),
    *("cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister"),
    *("cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease"),
    *("hipMalloc", "hipFree", "hipHostMalloc", "hipHostRegister"),
)


class HostCalls(Protocol):
    """The API calls of one report, the few columns at a time that a question needs."""

    @property
    def recorded(self) -> bool:
        """Whether the capture holds any."""

    def only_process(self, *, likely: bool = False) -> int | None:
        """The one process that owns all GPU work, as `launching` takes it; None: several.

        What is `likely`, by the first rows, costs no scan.
        """

    def launching(
        self,
        alone: int | None,
        names: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        whole: bool = False,
    ) -> Frame:
        """start_ns, pid and correlation_id of runtime and driver calls, by start.

        Calls of functions whose names begin so, or all `others`; `whole` adds end_ns and tid.
        """

    def synchronising(self) -> Frame:
        """start_ns, end_ns, pid, tid and name of every call that waits for the GPU, by start."""

    def named(self, *prefixes: str) -> Frame:
        """The same of every call whose name begins with one of the prefixes."""

    def holding(self, least_ns: int) -> tuple[Frame, Frame]:
        """The calls of `synchronising`; and others that allocate, or took at least so long."""

    def any_named(self, *prefixes: str) -> bool:
        """Whether any function's name begins so."""


def launch_columns(*, whole: bool) -> tuple[str, ...]:
    """The columns of launch calls."""
    return (*LAUNCH_COLUMNS, *(("end_ns", "tid") if whole else ()))


class CallsOfFrame:
    """HostCalls of a frame of API calls, of which `frame` gives columns."""

    def __init__(self, frame: Callable[[Sequence[str]], Frame]) -> None:
        self._read = partial(frame, _READ)

    @property
    def recorded(self) -> bool:
        return self._read().rows > 0

    def only_process(self, *, likely: bool = False) -> int | None:
        return None

    def launching(
        self,
        alone: int | None,
        names: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        whole: bool = False,
    ) -> Frame:
        calls = self._read()
        wanted = begins(calls, names) != others
        wanted &= calls.ints("event_class") <= LAST_LAUNCH_CLASS
        return calls.select(launch_columns(whole=whole)).take(wanted)

    def synchronising(self) -> Frame:
        calls = self._calls()
        return calls.take(synchronises(calls))

    def named(self, *prefixes: str) -> Frame:
        calls = self._calls()
        return calls.take(begins(calls, prefixes))

    def holding(self, least_ns: int) -> tuple[Frame, Frame]:
        return holding_of(self._calls(), least_ns)

    def any_named(self, *prefixes: str) -> bool:
        return bool(begins(self._read(), prefixes).any())

    def _calls(self) -> Frame:
        """The columns of those calls in which the host may wait."""
        calls = self._read()
        are_calls = np.isin(calls.ints("event_class"), CALL_CLASSES)
        return calls.select(CALL_COLUMNS).take(are_calls)


def begins(calls: Frame, prefixes: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of the calls of functions whose names begin with one of these prefixes."""
    low = tuple(prefix.lower() for prefix in prefixes)
    return calls.labels("name").where(lambda name: name.lower().startswith(low))


def synchronises(calls: Frame) -> NDArray[np.bool_]:
    """Mask of the calls that wait for the GPU."""
    return begins(calls, SYNCHRONISING) & ~calls.labels("name").where(lambda name: "Async" in name)


def holding_of(calls: Frame, least_ns: int) -> tuple[Frame, Frame]:
    """The calls that wait for the GPU; and others that allocate, or took at least so long."""
    start, end, waits = calls.ints("start_ns"), calls.ints("end_ns"), synchronises(calls)
    holds = ((end > start) & (end - start >= least_ns)) | begins(calls, ALLOCATING)
    return calls.take(waits), calls.take(holds & ~waits)
