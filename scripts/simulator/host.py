"""Events of the host in an export: API calls, NVTX, MPI and library calls."""

import json
from collections.abc import Mapping
from typing import Any

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

LIBRARIES = {"CUBLAS_EVENTS": "cublas", "CUDNN_EVENTS": "cudnn", "OSRT_API": "osrt"}


class Host(Session):
    """What threads did; times in ns of the session, threads by their id in the process."""

    def graph_event(
        self, start: int, graph: int = 1, graph_exec: int | None = None, **on: Any
    ) -> None:
        """Creation of a graph, or of its executable when `graph_exec` is said."""
        kind, name = ("graph", "cudaStreamEndCapture_v10000")
        if graph_exec is not None:
            kind, name = ("graph_exec", "cudaGraphInstantiateWithFlags_v11040")
        on |= {"graphId": graph, "graphExecId": graph_exec}
        self._call("CUDA_GRAPH_EVENTS", start, start, name, kind, on)

    def graph_node(self, start: int, node: int, *, original: int | None = None, **on: Any) -> None:
        """Creation of a node of a graph."""
        on |= {"graphNodeId": node, "originalGraphNodeId": original}
        name = "cudaLaunchKernel_v7000"
        self._call("CUDA_GRAPH_NODE_EVENTS", start, start, name, "graph_node", on)

    def api(
        self,
        start: int,
        end: int,
        name: Text,
        tid: int | None = None,
        *,
        correlation: int | None = None,
        event_class: int | str = "runtime",
        **on: Any,
    ) -> int:
        """A CUDA API call. Returns its correlation id."""
        number = self.correlation(on.get("process")) if correlation is None else correlation
        on |= {"tid": tid, "correlationId": number}
        self._call("CUPTI_ACTIVITY_KIND_RUNTIME", start, end, name, event_class, on)
        return number

    def library(
        self, table: str, start: int, end: int, name: Text, process: Process | None = None
    ) -> None:
        """A call into cuBLAS, cuDNN or the OS runtime: CUBLAS_EVENTS, CUDNN_EVENTS, OSRT_API."""
        self._call(table, start, end, name, LIBRARIES[table], {"process": process})

    def _call(
        self, table: str, start: int, end: int, name: Text, kind: int | str, on: dict[str, Any]
    ) -> None:
        """Add the row of a call of a thread."""
        number = EVENT_CLASSES[kind] if isinstance(kind, str) else kind
        thread = self._process(on.pop("process", None)).thread(on.pop("tid", None))
        row = {"start": start, "end": end, "eventClass": number, "globalTid": thread}
        self.add(table, on, **row, nameId=self.string(name))

    def nvtx_domain(self, name: Text, *, start: int = 0, process: Process | None = None) -> int:
        """A domain of a process. Returns its id, 1 and up."""
        owner = self._process(process)
        number = self._domains[owner.pid] = self._domains.get(owner.pid, 0) + 1
        self._nvtx(NVTX_DOMAIN, start, None, name, {"process": owner, "domain": number})
        return number

    def nvtx_push_pop(
        self,
        start: int,
        end: int | None,
        text: Text | None,
        tid: int | None = None,
        *,
        payload: Mapping[str, object] | str | None = None,
        **on: Any,
    ) -> None:
        """A range of one thread; a payload becomes jsonText."""
        if payload is not None:
            plain = isinstance(payload, str)
            on["jsonText"] = payload if plain else json.dumps(payload, separators=(",", ":"))
        self._nvtx(NVTX_PUSH_POP, start, end, text, {**on, "tid": tid})

    def nvtx_start_end(
        self, start: int, end: int | None, text: Text | None, tid: int | None = None, **on: Any
    ) -> None:
        """A range that may end on another thread or not at all."""
        on["rangeId"] = len(self._rows.get("NVTX_EVENTS", ())) + 1
        self._nvtx(NVTX_START_END, start, end, text, {**on, "tid": tid})

    def mark(self, time: int, text: Text | None, tid: int | None = None, **on: Any) -> None:
        """A moment; its end is NULL."""
        self._nvtx(NVTX_MARK, time, None, text, {**on, "tid": tid})

    def nvtx_thread_name(
        self, text: Text, tid: int | None = None, *, process: Process | None = None
    ) -> None:
        """A thread named through NVTX, as MPI ranks are: `MPI Rank 3`."""
        self._nvtx(NVTX_THREAD, 0, None, text, {"process": process, "tid": tid})

    def _nvtx(
        self, kind: int, start: int, end: int | None, text: Text | None, on: dict[str, Any]
    ) -> None:
        thread = self._process(on.pop("process", None)).thread(on.pop("tid", None))
        interned = on.pop("registered", False) and text is not None
        label = {"textId": self.string(text or "")} if interned else {"text": text}
        domain = on.pop("domain", 0)
        row: dict[str, Any] = {"start": start, "end": end, "eventType": kind, **label}
        self.add("NVTX_EVENTS", on, **row, globalTid=thread, domainId=domain)

    def mpi_rank(self, rank: int, process: Process | None = None) -> None:
        """The world rank of a process."""
        self.add("MPI_RANKS", globalTid=self._process(process).thread(), rank=rank)

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
        row: dict[str, object] = {"rank": rank, "timestamp": time, "commHandle": handle}
        row |= {"localRank": members.index(rank), "size": len(members), "commUid": uid}
        self.add("MPI_COMMUNICATORS", row, members=",".join(map(str, members)))
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
        row = {"commHandle": communicator, "rootRank": root, "size": size}
        row["recvSize"] = size if received is None else received
        self._mpi("MPI_COLLECTIVES_EVENTS", start, end, name, process, **row)

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
        process: Process | None = None,
    ) -> None:
        """A send or a receive, to or from rank `peer` of the communicator."""
        row = {"commHandle": communicator, "tag": tag, "remoteRank": peer, "size": size}
        self._mpi("MPI_P2P_EVENTS", start, end, name, process, **row)

    def mpi_wait(
        self, start: int, end: int, name: Text, request: int, process: Process | None = None
    ) -> None:
        """A wait for a request."""
        self._mpi("MPI_START_WAIT_EVENTS", start, end, name, process, requestHandle=request)

    def mpi_other(self, start: int, end: int, name: Text, process: Process | None = None) -> None:
        """Another MPI call, such as MPI_Init."""
        self._mpi("MPI_OTHER_EVENTS", start, end, name, process)

    def _mpi(self, table: str, *call: Any, **row: object) -> None:
        """Add the row of an MPI call: its start, end, name and process."""
        start, end, name, process = call
        thread, text = self._process(process).thread(), self.string(name)
        self.add(table, row, start=start, end=end, globalTid=thread, textId=text)
