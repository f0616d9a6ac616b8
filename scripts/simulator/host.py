"""Events of the host in an export: API calls, NVTX, MPI and library calls."""

import json
from collections.abc import Mapping
from typing import Any

from simulator import schema
from simulator.database import Text
from simulator.session import Process, Session

Row = dict[str, Any]
LIBRARIES = {"CUBLAS_EVENTS": "cublas", "CUDNN_EVENTS": "cudnn", "OSRT_API": "osrt"}
# What is said of MPI calls here, and the columns of it.
_MPI = {"communicator": "commHandle", "root": "rootRank", "received": "recvSize"}


class Host(Session):
    """What threads did; times in ns of the session, threads by their id in the process.

    Events take columns by their own names, too, and the process that they are of.
    """

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
        event_class: str = "runtime",
        **on: Any,
    ) -> int:
        """A CUDA API call. Returns its correlation id."""
        number = self.correlation(on.get("process")) if correlation is None else correlation
        on |= {"tid": tid, "correlationId": number}
        self._call("CUPTI_ACTIVITY_KIND_RUNTIME", start, end, name, event_class, on)
        return number

    def library(self, table: str, start: int, end: int, name: Text, **on: Any) -> None:
        """A call into cuBLAS, cuDNN or the OS runtime: CUBLAS_EVENTS, CUDNN_EVENTS, OSRT_API."""
        self._call(table, start, end, name, LIBRARIES[table], on)

    def _call(self, table: str, start: int, end: int, name: Text, kind: str, on: Row) -> None:
        thread = self._process(on.pop("process", None)).thread(on.pop("tid", None))
        row = {"start": start, "end": end, "globalTid": thread, "nameId": self.string(name)}
        self.add(table, on, **row, eventClass=schema.EVENT_CLASSES[kind])

    def nvtx_domain(self, name: Text, *, start: int = 0, process: Process | None = None) -> int:
        """A domain of a process. Returns its id, 1 and up."""
        owner = self._process(process)
        self._domains[owner.pid] += 1
        number = self._domains[owner.pid]
        self._nvtx(schema.NVTX_DOMAIN, start, None, name, {"process": owner, "domain": number})
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
        self._nvtx(schema.NVTX_PUSH_POP, start, end, text, on | {"tid": tid})

    def nvtx_start_end(
        self, start: int, end: int | None, text: Text | None, tid: int | None = None, **on: Any
    ) -> None:
        """A range that may end on another thread or not at all."""
        on["rangeId"] = len(self._rows.get("NVTX_EVENTS", ())) + 1
        self._nvtx(schema.NVTX_START_END, start, end, text, on | {"tid": tid})

    def mark(self, time: int, text: Text | None, **on: Any) -> None:
        """A moment; its end is NULL."""
        self._nvtx(schema.NVTX_MARK, time, None, text, on)

    def nvtx_thread_name(self, text: Text, **on: Any) -> None:
        """A thread named through NVTX, as MPI ranks are: `MPI Rank 3`."""
        self._nvtx(schema.NVTX_THREAD, 0, None, text, on)

    def _nvtx(self, kind: int, start: int, end: int | None, text: Text | None, on: Row) -> None:
        thread = self._process(on.pop("process", None)).thread(on.pop("tid", None))
        interned = on.pop("registered", False) and text is not None
        label = {"textId": self.string(text or "")} if interned else {"text": text}
        row: Row = {"start": start, "end": end, "eventType": kind, **label}
        row["domainId"] = on.pop("domain", 0)
        self.add("NVTX_EVENTS", on, **row, globalTid=thread)

    def mpi_rank(self, rank: int, process: Process | None = None) -> None:
        self.add("MPI_RANKS", globalTid=self._process(process).thread(), rank=rank)

    def mpi_communicator(
        self,
        rank: int,
        handle: int,
        members: tuple[int, ...],
        *,
        uid: int | None = None,
        time: int = 0,
    ) -> None:
        """A communicator of world ranks as the process of one of them knows it."""
        row: dict[str, object] = {"rank": rank, "timestamp": time, "commHandle": handle}
        row |= {"localRank": members.index(rank), "size": len(members), "commUid": uid}
        self.add("MPI_COMMUNICATORS", row, members=",".join(map(str, members)))

    def mpi_collective(
        self, start: int, end: int, name: Text, size: int, process: Process | None = None, **on: Any
    ) -> None:
        """An MPI collective of a communicator from or to a root; bytes as the profiler estimates
        them, received as many as sent unless `received` says otherwise."""
        on = {"size": size, "received": size, "process": process} | on
        self._mpi("MPI_COLLECTIVES_EVENTS", start, end, name, on)

    def mpi_message(
        self, start: int, end: int, name: Text, size: int, peer: int, **on: Any
    ) -> None:
        """A send or a receive, to or from rank `peer` of the communicator."""
        on = {"size": size, "remoteRank": peer, "tag": 0} | on
        self._mpi("MPI_P2P_EVENTS", start, end, name, on)

    def mpi_other(self, start: int, end: int, name: Text, process: Process | None = None) -> None:
        self._mpi("MPI_OTHER_EVENTS", start, end, name, {"process": process})

    def _mpi(self, table: str, start: int, end: int, name: Text, on: Row) -> None:
        thread = self._process(on.pop("process", None)).thread()
        row = {"start": start, "end": end, "globalTid": thread, "textId": self.string(name)}
        self.add(table, {_MPI.get(key, key): value for key, value in on.items()}, **row)
