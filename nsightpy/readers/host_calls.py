"""What is asked of a report's API calls, whatever file they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nsightpy.frames import Frame

# Calls that launch work. Others may, too; but most calls of a report do not.
LAUNCHING = ("Launch", "Memcpy", "Memset", "GraphLaunch")
ORDERING = (*LAUNCHING, "EventRecord")
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
        kinds: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        ends: bool = False,
        threads: bool = False,
    ) -> Frame:
        """start_ns, pid and correlation_id of runtime and driver calls, by start.

        Calls of these `kinds`, or all `others`; `ends` adds end_ns, `threads` adds tid.
        """

    def synchronising(self) -> Frame:
        """start_ns, end_ns, pid, tid and name of every call that waits for the GPU, by start."""

    def named(self, *prefixes: str) -> Frame:
        """The same of every call whose name begins with one of the prefixes."""

    def holding(self, least_ns: int) -> tuple[Frame, Frame]:
        """The calls of `synchronising`; and those that allocate, or took at least so long."""

    def any_named(self, *prefixes: str) -> bool:
        """Whether any function's name begins so."""
