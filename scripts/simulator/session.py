"""What surrounds the events of an export: processes, threads, devices, clocks, environment."""

from collections.abc import Iterable, Mapping
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
        capture: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(path, generation)
        self.hostname = hostname
        self.utc_epoch_ns = utc_epoch_ns
        self.system_clock_ns = system_clock_ns
        self.duration_ns = duration_ns
        self.environment = dict(environment or {})
        self.graph_mode = graph_mode
        self.include_json = include_json
        self.capture = list(capture)
        self.processes: dict[int, Process] = {}
        self._correlations: dict[int, int] = {}
        self._domains: dict[int, int] = {}

    def process(
        self, pid: int = 1000, name: Text = "python", env: Mapping[str, str] | None = None
    ) -> Process:
        """Register a process. `env` joins the environment that the profiler ran in."""
        self.environment.update(env or {})
        process = Process(pid)
        if pid not in self.processes:
            self.processes[pid] = process
            if self.has("PROCESSES"):
                self.add("PROCESSES", {"globalPid": process.global_pid, "pid": pid, "name": name})
        return process

    def thread_name(
        self, name: Text, tid: int | None = None, process: Process | None = None
    ) -> int:
        """Name a thread as the operating system does. Returns its globalTid."""
        thread = self._process(process).thread(tid)
        row = {"nameId": self.string(name), "priority": 20, "globalTid": thread}
        self.add("ThreadNames", row)
        return thread

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
        self.add(
            "DIAGNOSTIC_EVENT",
            {
                "timestamp": time,
                "timestampType": 1,
                "source": source,
                "severity": severity,
                "text": text,
                "globalPid": pid,
            },
        )

    def gpu(self, gpu_id: int = 0, **columns: object) -> int:
        """One GPU of the machine, an H100 unless `columns` says otherwise. Returns its id."""
        values = {**H100, **identity(gpu_id, self.hostname), **columns}
        if self.generation == schema.OLD:
            narrow = {**values, "deviceId": values["cuDevice"]}
            self.add("TARGET_INFO_GPU", narrow)
            pid = next(iter(self.processes), 1000)
            self.add("TARGET_INFO_CUDA_GPU", old_layout(values, pid))
        else:
            self.add("TARGET_INFO_GPU", {**H100, **identity(gpu_id, self.hostname)}, **columns)
        return gpu_id

    def cuda_device(
        self, gpu_id: int = 0, cuda_id: int = 0, process: Process | None = None
    ) -> None:
        """Say which GPU a process sees as CUDA device `cuda_id`, with its context and streams."""
        pid = self._process(process).pid
        uuid = identity(gpu_id, self.hostname)["uuid"]
        if self.has("TARGET_INFO_CUDA_DEVICE"):
            self.add(
                "TARGET_INFO_CUDA_DEVICE",
                {
                    "gpuId": gpu_id,
                    "cudaId": cuda_id,
                    "pid": pid,
                    "uuid": uuid,
                    "numMultiprocessors": H100["smCount"],
                },
            )
        context = {"hwId": 0, "vmId": 1, "processId": pid, "deviceId": cuda_id, "contextId": 1}
        if self.has("TARGET_INFO_CUDA_CONTEXT_INFO"):
            extra = dict.fromkeys(("parentContextId", "isGreenContext", "numMultiprocessors"), 0)
            self.add("TARGET_INFO_CUDA_CONTEXT_INFO", {"nullStreamId": 7, **context, **extra})
        else:
            self.add("TARGET_INFO_CUDA_NULL_STREAM", {"streamId": 7, **context})
        self.stream(7, flag=3, process=process)

    def stream(
        self, stream: int, flag: int = 2, priority: int = 0, process: Process | None = None
    ) -> int:
        """A CUDA stream; flag 1 default, 2 non-blocking, 3 null; priority 0 or negative."""
        self.add(
            "TARGET_INFO_CUDA_STREAM",
            {
                "streamId": stream,
                "vmId": 1,
                "processId": self._process(process).pid,
                "contextId": 1,
                "priority": priority & 0xFFFFFFFF,
                "flag": flag,
            },
        )
        return stream

    def correlation(self, process: Process | None = None) -> int:
        """A fresh correlation id of a process (other processes count on their own)."""
        pid = self._process(process).pid
        self._correlations[pid] = self._correlations.get(pid, 0) + 1
        return self._correlations[pid]

    def _process(self, process: Process | None) -> Process:
        if process is not None:
            return process
        if not self.processes:
            self.process()
        return next(iter(self.processes.values()))

    def _finish(self) -> None:
        super()._finish()
        if self.has("TARGET_INFO_SYSTEM_ENV"):
            self._system_environment()
        if self.has("TARGET_INFO_SESSION_START_TIME") and self.utc_epoch_ns is not None:
            stamp = datetime.fromtimestamp(self.utc_epoch_ns // 10**9, UTC)
            iso = stamp.replace(tzinfo=None).isoformat()
            row = {"utcEpochNs": self.utc_epoch_ns, "utcTime": iso, "localTime": iso}
            row["systemClockNs"] = self.system_clock_ns
            self.add("TARGET_INFO_SESSION_START_TIME", row)
        if self.has("ANALYSIS_DETAILS"):
            self._analysis_details()
        self._metadata()

    def _analysis_details(self) -> None:
        duration = self.duration_ns
        if duration is None:
            ends = [
                value
                for name, rows in self._rows.items()
                for index, column in enumerate(self.tables[name])
                if column.name == "end"
                for row in rows
                if isinstance(value := row[index], int)
            ]
            duration = max(ends, default=0)
        # Older exporters counted from a clock of their own.
        start = self.system_clock_ns if self.generation == schema.NEW else 1_332_298_147
        row = {"globalVid": VM_ID, "duration": duration, "startTime": start}
        self.add("ANALYSIS_DETAILS", {**row, "stopTime": start + duration})

    def _system_environment(self) -> None:
        between = ";" if self.generation == schema.NEW else "\0"
        pairs = between.join(f"{key}={value}" for key, value in self.environment.items())
        facts: dict[str, tuple[int, str]] = {
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
            row |= {"nameEnum": number, "value": value}
            self.add("TARGET_INFO_SYSTEM_ENV", row)

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
        if self.generation == schema.MID:
            facts["EXPORT_LAZY"] = "true"
            for name, text in facts.items():
                self.add("EXPORT_META_DATA", {"name": name, "value": text})
            return
        facts["EXPORT_PARAM_LAZY"] = "true"
        facts["EXPORT_PARAM_INCLUDE_JSON"] = str(self.include_json).lower()
        facts["EXPORT_PARAM_TIME_SHIFT"] = "0"
        facts["EXPORT_CONFIG_TIME_SHIFT"] = "0"
        for name, text in facts.items():
            self.add("META_DATA_EXPORT", {"name": name, "value": text})
        capture = [("CUDA_GRAPH_TRACE_OPTIONS:MODE", self.graph_mode)]
        capture += [("PROCESS_0:COMMAND", "python"), *self.capture]
        capture += [
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'{key}="{value}"')
            for key, value in self.environment.items()
        ]
        for name, text in capture:
            self.add("META_DATA_CAPTURE", {"name": name, "value": text})
