"""Events of the host in an export: API calls, NVTX, MPI and library calls."""

import json
from collections.abc import Mapping

from simulator.database import Text
from simulator.enumerations import (
    EVENT_CLASSES,
    NVTX_DOMAIN,
    NVTX_MARK,
    NVTX_PUSH_POP,
    NVTX_START_END,
    NVTX_THREAD,
)
from simulator.session import Process, Session

# start, end[, thread id[, API name]]
Launch = tuple[int, int] | tuple[int, int, int] | tuple[int, int, int, Text]


class Host(Session):
    """What threads did; times in ns of the session, threads by their id in the process."""

    def api(
        self,
        start: int,
        end: int,
        name: Text,
        tid: int | None = None,
        *,
        process: Process | None = None,
        correlation: int | None = None,
        event_class: int | str = "runtime",
        **columns: object,
    ) -> int:
        """A CUDA API call. Returns its correlation id."""
        number = self.correlation(process) if correlation is None else correlation
        kind = EVENT_CLASSES[event_class] if isinstance(event_class, str) else event_class
        row = {
            "start": start,
            "end": end,
            "eventClass": kind,
            "globalTid": self._process(process).thread(tid),
            "correlationId": number,
            "nameId": self.string(name),
        }
        self.add("CUPTI_ACTIVITY_KIND_RUNTIME", row, **columns)
        return number

    def nvtx_domain(
        self,
        name: Text,
        *,
        start: int = 0,
        process: Process | None = None,
        tid: int | None = None,
        declared: bool = True,
    ) -> int:
        """A domain of a process; undeclared ones have no row. Returns its id, 1 and up."""
        owner = self._process(process)
        number = self._domains[owner.pid] = self._domains.get(owner.pid, 0) + 1
        if declared:
            self._nvtx(start, None, NVTX_DOMAIN, owner, tid, number, {"text": name})
        return number

    def nvtx_push_pop(
        self,
        start: int,
        end: int | None,
        text: Text | None,
        tid: int | None = None,
        *,
        domain: int = 0,
        process: Process | None = None,
        registered: bool = False,
        payload: Mapping[str, object] | str | None = None,
        **columns: object,
    ) -> None:
        """A range of one thread. A payload becomes jsonText; `registered` text is interned."""
        values = self._label(text, registered)
        if payload is not None:
            plain = payload if isinstance(payload, str) else json.dumps(payload)
            values["jsonText"] = plain.replace(", ", ",").replace('": ', '":')
        self._nvtx(start, end, NVTX_PUSH_POP, process, tid, domain, values | columns)

    def nvtx_start_end(
        self,
        start: int,
        end: int | None,
        text: Text | None,
        tid: int | None = None,
        *,
        end_tid: int | None = None,
        domain: int = 0,
        process: Process | None = None,
        registered: bool = False,
        **columns: object,
    ) -> int:
        """A range that may end on another thread or not at all. Returns its range id."""
        rows = self._rows.get("NVTX_EVENTS", [])
        number = len(rows) + 1
        values = self._label(text, registered) | {"rangeId": number}
        if end_tid is not None:
            values["endGlobalTid"] = self._process(process).thread(end_tid)
        self._nvtx(start, end, NVTX_START_END, process, tid, domain, values | columns)
        return number

    def mark(
        self,
        time: int,
        text: Text | None,
        tid: int | None = None,
        *,
        domain: int = 0,
        process: Process | None = None,
        **columns: object,
    ) -> None:
        """A moment; its end is NULL."""
        values = self._label(text, False) | columns
        self._nvtx(time, None, NVTX_MARK, process, tid, domain, values)

    def nvtx_thread_name(
        self, text: Text, tid: int | None = None, *, process: Process | None = None, time: int = 0
    ) -> None:
        """A thread named through NVTX, as MPI ranks are: `MPI Rank 3`."""
        self._nvtx(time, None, NVTX_THREAD, process, tid, 0, {"text": text})

    def mpi_rank(self, rank: int, process: Process | None = None) -> int:
        """The world rank of a process. Returns it."""
        thread = self._process(process).thread()
        self.add("MPI_RANKS", {"globalTid": thread, "rank": rank})
        return rank

    def mpi_communicator(
        self,
        rank: int,
        handle: int,
        members: tuple[int, ...],
        *,
        uid: int | None = None,
        time: int = 0,
    ) -> int:
        """A communicator of world ranks as the process of one of them knows it; its handle."""
        row = {
            "rank": rank,
            "timestamp": time,
            "commHandle": handle,
            "localRank": members.index(rank),
            "size": len(members),
            "members": ",".join(map(str, members)),
            "commUid": uid,
        }
        self.add("MPI_COMMUNICATORS", row)
        return handle

    def mpi_collective(
        self,
        start: int,
        end: int,
        name: Text,
        size: int,
        process: Process | None = None,
        *,
        communicator: int | None = None,
        root: int | None = None,
        received: int | None = None,
    ) -> None:
        """An MPI collective on the host; sizes in bytes as the profiler estimates them."""
        row = {
            **self._mpi(start, end, name, process),
            "commHandle": communicator,
            "rootRank": root,
            "size": size,
            "recvSize": size if received is None else received,
        }
        self.add("MPI_COLLECTIVES_EVENTS", row)

    def mpi_message(
        self,
        start: int,
        end: int,
        name: Text,
        size: int,
        peer: int,
        *,
        tag: int = 0,
        communicator: int | None = None,
        request: int | None = None,
        process: Process | None = None,
    ) -> None:
        """A send or a receive, to or from rank `peer` of the communicator."""
        row = {
            **self._mpi(start, end, name, process),
            "commHandle": communicator,
            "tag": tag,
            "remoteRank": peer,
            "size": size,
            "requestHandle": request,
        }
        self.add("MPI_P2P_EVENTS", row)

    def mpi_wait(
        self, start: int, end: int, name: Text, request: int, process: Process | None = None
    ) -> None:
        """A wait for a request."""
        row = {**self._mpi(start, end, name, process), "requestHandle": request}
        self.add("MPI_START_WAIT_EVENTS", row)

    def mpi_other(self, start: int, end: int, name: Text, process: Process | None = None) -> None:
        """Another MPI call, such as MPI_Init."""
        self.add("MPI_OTHER_EVENTS", self._mpi(start, end, name, process))

    def _mpi(self, start: int, end: int, name: Text, process: Process | None) -> dict[str, object]:
        return {
            "start": start,
            "end": end,
            "globalTid": self._process(process).thread(),
            "textId": self.string(name),
        }

    def library(
        self, table: str, start: int, end: int, name: Text, process: Process | None = None
    ) -> None:
        """A call into cuBLAS, cuDNN or the OS runtime: CUBLAS_EVENTS, CUDNN_EVENTS, OSRT_API."""
        classes = {"CUBLAS_EVENTS": "cublas", "CUDNN_EVENTS": "cudnn", "OSRT_API": "osrt"}
        row = {
            "start": start,
            "end": end,
            "eventClass": EVENT_CLASSES[classes[table]],
            "globalTid": self._process(process).thread(),
            "nameId": self.string(name),
        }
        self.add(table, row)

    def _launch(
        self, launch: Launch | None, name: Text, process: Process | None, correlation: int | None
    ) -> int:
        """The correlation id of an operation, after the row of its call where there is one."""
        if launch is None:
            return self.correlation(process) if correlation is None else correlation
        tid = launch[2] if len(launch) > 2 else None
        called = launch[3] if len(launch) > 3 else name
        return self.api(launch[0], launch[1], called, tid, process=process, correlation=correlation)

    def _label(self, text: Text | None, registered: bool) -> dict[str, object]:
        if text is None:
            return {}
        return {"textId": self.string(text)} if registered else {"text": text}

    def _nvtx(
        self,
        start: int,
        end: int | None,
        kind: int,
        process: Process | None,
        tid: int | None,
        domain: int,
        values: Mapping[str, object],
    ) -> None:
        row = {"start": start, "end": end, "eventType": kind, "domainId": domain}
        row["globalTid"] = self._process(process).thread(tid)
        self.add("NVTX_EVENTS", row | dict(values))
