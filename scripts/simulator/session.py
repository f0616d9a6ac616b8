"""What surrounds the events of an export: processes, threads, devices, clocks, environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from simulator import schema
from simulator.database import Database, Text
from simulator.devices import H100, identity, old_layout

VM_ID = 1 << 48
NO_PROCESS = -144115188075855872
UTC_EPOCH_NS = 1_750_000_000_000_000_000


@dataclass(frozen=True)
class Process:
    """A process of a report; ids as the tables hold them."""

    pid: int

    @property
    def global_pid(self) -> int:
        """The 64-bit id that activity rows carry."""
        return VM_ID | ((self.pid & 0xFFFFFF) << 24)

    def thread(self, tid: int | None = None) -> int:
        """The globalTid of a thread; the main thread when none is named."""
        return self.global_pid | ((self.pid if tid is None else tid) & 0xFFFFFF)


class Session(Database):
    """A database plus the rows that every report has, whatever was traced."""

    def __init__(
        self,
        path: str | Path,
        generation: str = schema.NEW,
        *,
        hostname: str | None = "node0",
        utc_epoch_ns: int | None = UTC_EPOCH_NS,
        system_clock_ns: int = 1_000_000_000_000,
        duration_ns: int | None = None,
        environment: Mapping[str, str] | None = None,
        graph_mode: str = "Graph",
        include_json: bool = True,
    ) -> None:
        super().__init__(path, generation)
        self.hostname = hostname
        self.utc_epoch_ns = utc_epoch_ns
        self.system_clock_ns = system_clock_ns
        self.duration_ns = duration_ns
        self.environment = dict(environment or {})
        self.graph_mode = graph_mode
        self.include_json = include_json
        self.processes: dict[int, Process] = {}
        self._correlations: dict[int, int] = {}
        self._domains: dict[int, int] = {}

    def process(self, pid: int = 1000, name: Text = "python") -> Process:
        """Register a process."""
        process = Process(pid)
        if pid not in self.processes:
            self.processes[pid] = process
            if self.has("PROCESSES"):
                self.add("PROCESSES", globalPid=process.global_pid, pid=pid, name=name)
        return process

    def thread_name(
        self, name: Text, tid: int | None = None, process: Process | None = None
    ) -> None:
        """Name a thread as the operating system does."""
        thread = self._process(process).thread(tid)
        self.add("ThreadNames", nameId=self.string(name), priority=20, globalTid=thread)

    def diagnostic(
        self,
        time: int,
        text: Text,
        severity: int = 1,
        source: int = 3,
        process: Process | None = None,
    ) -> None:
        """A message of the profiler; severity 1 info, 2 warning, 3 error."""
        pid = NO_PROCESS if process is None else process.global_pid
        row: dict[str, object] = {"timestamp": time, "timestampType": 1, "globalPid": pid}
        self.add("DIAGNOSTIC_EVENT", row, source=source, severity=severity, text=text)

    def gpu(self, gpu_id: int = 0, **columns: object) -> None:
        """One GPU of the machine, an H100 unless `columns` says otherwise."""
        values = {**H100, **identity(gpu_id, self.hostname)}
        if self.generation == schema.OLD:
            values |= columns
            pid = next(iter(self.processes), 1000)
            self.add("TARGET_INFO_CUDA_GPU", **old_layout(values, pid))
            columns = {"deviceId": values["cuDevice"]}
        self.add("TARGET_INFO_GPU", columns, **values)

    def cuda_device(
        self, gpu_id: int = 0, cuda_id: int = 0, process: Process | None = None
    ) -> None:
        """Say which GPU a process sees as CUDA device `cuda_id`, with its context and streams."""
        pid = self._process(process).pid
        if self.has("TARGET_INFO_CUDA_DEVICE"):
            row = {"uuid": identity(gpu_id, self.hostname)["uuid"], "pid": pid}
            row["numMultiprocessors"] = H100["smCount"]
            self.add("TARGET_INFO_CUDA_DEVICE", row, gpuId=gpu_id, cudaId=cuda_id)
        context = {"hwId": 0, "vmId": 1, "processId": pid, "deviceId": cuda_id, "contextId": 1}
        if self.has("TARGET_INFO_CUDA_CONTEXT_INFO"):
            extra = dict.fromkeys(("parentContextId", "isGreenContext", "numMultiprocessors"), 0)
            self.add("TARGET_INFO_CUDA_CONTEXT_INFO", context | extra, nullStreamId=7)
        else:
            self.add("TARGET_INFO_CUDA_NULL_STREAM", context, streamId=7)
        self.stream(7, flag=3, process=process)

    def stream(
        self, stream: int, flag: int = 2, priority: int = 0, process: Process | None = None
    ) -> None:
        """A CUDA stream; flag 1 default, 2 non-blocking, 3 null; priority 0 or negative."""
        pid = self._process(process).pid
        row = {"vmId": 1, "processId": pid, "contextId": 1, "priority": priority & 0xFFFFFFFF}
        self.add("TARGET_INFO_CUDA_STREAM", row, streamId=stream, flag=flag)

    def correlation(self, process: Process | None = None) -> int:
        """A fresh correlation id of a process (other processes count on their own)."""
        pid = self._process(process).pid
        self._correlations[pid] = self._correlations.get(pid, 0) + 1
        return self._correlations[pid]

    def _process(self, process: Process | None) -> Process:
        """The given process, or the first one of the report."""
        if process is not None:
            return process
        return next(iter(self.processes.values()), None) or self.process()

    def _finish(self) -> None:
        super()._finish()
        self._system_environment()
        if self.has("TARGET_INFO_SESSION_START_TIME") and self.utc_epoch_ns is not None:
            stamp = datetime.fromtimestamp(self.utc_epoch_ns // 10**9, UTC)
            iso = stamp.replace(tzinfo=None).isoformat()
            row = {"utcEpochNs": self.utc_epoch_ns, "utcTime": iso, "localTime": iso}
            clock = self.system_clock_ns
            self.add("TARGET_INFO_SESSION_START_TIME", **row, systemClockNs=clock)
        if self.has("ANALYSIS_DETAILS"):
            duration = self._last_end() if self.duration_ns is None else self.duration_ns
            # Older exporters counted from a clock of their own.
            start = self.system_clock_ns if self.generation == schema.NEW else 1_332_298_147
            row = {"globalVid": VM_ID, "duration": duration, "startTime": start}
            self.add("ANALYSIS_DETAILS", row, stopTime=start + duration)
        self._metadata()

    def _last_end(self) -> int:
        """The last end of anything."""
        ends = [0]
        for name, rows in self._rows.items():
            places = [n for n, column in enumerate(self.tables[name]) if column.name == "end"]
            found = (row[place] for place in places for row in rows)
            ends += [value for value in found if isinstance(value, int)]
        return max(ends)

    def _system_environment(self) -> None:
        if not self.has("TARGET_INFO_SYSTEM_ENV"):
            return
        between = ";" if self.generation == schema.NEW else "\0"
        pairs = between.join(f"{key}={value}" for key, value in self.environment.items())
        facts = {
            "CpuDescription": (13, "Simulated CPU"),
            "NvDriverVersion": (205, "595.71.05"),
            "OsDescription": (605, "Simulated Linux"),
            "DeviceEnvironment": (610, pairs),
            "CudaDriverVersion": (611, "13020"),
        }
        if self.hostname is not None:
            facts["Hostname"] = (619, self.hostname)
        for name, (number, value) in facts.items():
            row = {"globalVid": VM_ID, "devStateName": "Local (CLI)", "name": name}
            self.add("TARGET_INFO_SYSTEM_ENV", row, nameEnum=number, value=value)

    def _metadata(self) -> None:
        if self.generation == schema.OLD:
            return
        version = schema.SCHEMA_VERSION[self.generation]
        facts = {
            "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
            "EXPORT_PRODUCT_VERSION": schema.PRODUCT_VERSION[self.generation],
            "EXPORT_SCHEMA_VERSION": version,
        }
        for part, value in zip(("MAJOR", "MINOR", "MICRO"), version.split("."), strict=True):
            facts[f"EXPORT_SCHEMA_VERSION_{part}"] = value
        table, captured = "META_DATA_EXPORT", [("CUDA_GRAPH_TRACE_OPTIONS:MODE", self.graph_mode)]
        if self.generation == schema.MID:
            table, captured = "EXPORT_META_DATA", []
            facts["EXPORT_LAZY"] = "true"
        else:
            facts["EXPORT_PARAM_LAZY"] = "true"
            facts["EXPORT_PARAM_INCLUDE_JSON"] = str(self.include_json).lower()
            facts |= {"EXPORT_PARAM_TIME_SHIFT": "0", "EXPORT_CONFIG_TIME_SHIFT": "0"}
            captured.append(("PROCESS_0:COMMAND", "python"))
            for key, value in self.environment.items():
                captured.append(("PROCESS_0:ENVIRONMENT_VARIABLE", f'{key}="{value}"'))
        for name, text in facts.items():
            self.add(table, name=name, value=text)
        for name, text in captured:
            self.add("META_DATA_CAPTURE", name=name, value=text)
