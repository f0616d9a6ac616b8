"""What an export holds in place of a whole number ends with a message that says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightpy.errors import ReportError
from nsightpy.reports.nsys import NsysReport
from tests.support.full_export import changed, full
from tests.support.reports import refused

ACTIVITY = "CUPTI_ACTIVITY_KIND_"
SPAN = ("start", "end")
THREAD = (*SPAN, "globalTid")
WORK = (*SPAN, "globalPid", "deviceId", "streamId", "contextId", "correlationId")
# By table: the frame that is made of it, and its columns of whole numbers.
NEEDED = {
    f"{ACTIVITY}KERNEL": ("kernels", (*WORK, "gridX", "blockZ", "demangledName", "shortName")),
    f"{ACTIVITY}GRAPH_TRACE": ("graph_launches", (*WORK, "graphId")),
    f"{ACTIVITY}MEMCPY": ("memory_operations", (*WORK, "bytes", "copyKind", "srcKind")),
    f"{ACTIVITY}MEMSET": ("memory_operations", (*WORK, "bytes")),
    f"{ACTIVITY}RUNTIME": ("api_calls", (*THREAD, "correlationId", "nameId", "eventClass")),
    f"{ACTIVITY}SYNCHRONIZATION": ("synchronizations", (*SPAN, "streamId", "eventId")),
    f"{ACTIVITY}CUDA_EVENT": ("cuda_events", ("timestamp", "streamId", "eventId")),
    "NVTX_EVENTS": ("nvtx_ranges", (*THREAD, "textId", "domainId")),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": ("memory_usage", ("start", "globalPid", "bytes", "address")),
    "OSRT_API": ("os_calls", (*THREAD, "nameId")),
    "CUBLAS_EVENTS": ("library_calls", (*THREAD, "nameId")),
    "MPI_COLLECTIVES_EVENTS": ("mpi_calls", (*THREAD, "textId", "size", "rootRank", "commHandle")),
    "MPI_P2P_EVENTS": ("mpi_calls", (*THREAD, "textId", "size", "remoteRank", "tag")),
    "MPI_START_WAIT_EVENTS": ("mpi_calls", (*THREAD, "requestHandle")),
    "MPI_OTHER_EVENTS": ("mpi_calls", THREAD),
    "GPU_METRICS": ("gpu_metrics", ("timestamp", "typeId", "metricId", "value")),
    "NET_NIC_METRIC": ("nic_metrics", (*SPAN, "globalId", "metricsIdx", "value")),
    "SCHED_EVENTS": ("cpu_runs", ("start", "cpu", "isSchedIn", "globalTid")),
    "COMPOSITE_EVENTS": ("cpu_samples", ("start", "globalTid")),
    "SAMPLING_CALLCHAINS": ("cpu_samples", ("symbol", "module")),
}
# Tables that the simulator does not write.
MORE = (
    "CREATE TABLE COMPOSITE_EVENTS (id INTEGER, start INTEGER, globalTid INTEGER)",
    "INSERT INTO COMPOSITE_EVENTS VALUES (1, 10, 1)",
    "CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth)",
    "INSERT INTO SAMPLING_CALLCHAINS VALUES (1, 1, 1, 0)",
    "CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER)",
    "INSERT INTO SCHED_EVENTS VALUES (10, 0, 1, 1), (20, 0, 0, 1)",
)
COLUMNS = [(table, column) for table, (_, columns) in NEEDED.items() for column in columns]
# 7, but as something else; a text that is a number would become one where a column has a type.
VALUES = {"text": "'seven'", "real": "7.5", "blob": "x'07'"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    export = full(tmp_path_factory.mktemp("whole") / "whole.sqlite")
    export.cuda_event(1, 1, launch=(20, 30))
    export.memory_usage(40, 1024)
    export.mpi_communicator(0, 5, (0, 1))
    export.mpi_collective(2_000, 2_500, "MPI_Allreduce", 8, communicator=5, root=0)
    export.mpi_message(2_600, 2_700, "MPI_Send", 8, 1, communicator=5)
    export.mpi_wait(2_800, 2_900, "MPI_Wait", 7)
    export.mpi_other(2_950, 2_960, "MPI_Init")
    for table in ("OSRT_API", "CUBLAS_EVENTS"):
        export.library(table, 100, 200, "call")
    export.gpu_metric(5, "SM Active", 50)
    export.nic_metric(5, 9, "rx", 7)
    return changed(export.write(), export.path.with_name("more.sqlite"), MORE)


@pytest.mark.parametrize("table, column", COLUMNS)
def test_columns_of_events(whole: Path, tmp_path: Path, table: str, column: str) -> None:
    for kind, value in VALUES.items():
        last = f"rowid = (SELECT max(rowid) FROM {table}"
        events = ") " if table != "NVTX_EVENTS" else " WHERE eventType IN (59, 60, 70, 71))"
        statement = f"UPDATE {table} SET {column} = {value} WHERE {last}{events}"
        path = changed(whole, tmp_path / f"{kind}.sqlite", [statement])
        report = NsysReport(path)
        with pytest.raises(ReportError) as refusal:
            report.frame(NEEDED[table][0])
        expected = f"is damaged: {table}.{column} holds a {kind} where a whole number belongs"
        assert refusal.value.problem == expected


def test_the_command_says_so(whole: Path, tmp_path: Path) -> None:
    statement = f"UPDATE {ACTIVITY}KERNEL SET start = '7th' WHERE rowid = 1"
    path = changed(whole, tmp_path / "a.sqlite", [statement])
    said = refused("kernels", path)
    assert f"{path}: is damaged: {ACTIVITY}KERNEL.start holds a text" in said
