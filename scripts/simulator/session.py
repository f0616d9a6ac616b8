"""What surrounds the events of an export: processes, threads, devices, clocks, environment."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from simulator import schema
from simulator.database import Database, Text

VM_ID = 1 << 48
NO_PROCESS = -144115188075855872
UTC_EPOCH_NS = 1_750_000_000_000_000_000


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


# One H100 as the driver reports it.
H100: dict[str, object] = {"name": "NVIDIA H100 80GB HBM3", "chipName": "GH100"}
_NUMBERS = _pairs(
    "vmId 281474976710656 isDiscrete 1 l2CacheSize 52428800 totalMemory 85029158912 "
    "memoryBandwidth 3352320000000 clockRate 1980000000 smCount 132 luid 0 revision 161 "
    "nodeMask 0 constantMemory 65536 maxIPC 4 maxRegistersPerBlock 65536 "
    "maxShmemPerBlock 49152 maxShmemPerBlockOptin 232448 maxShmemPerSm 233472 "
    "maxRegistersPerSm 65536 threadsPerWarp 32 asyncEngines 3 maxWarpsPerSm 64 "
    "maxBlocksPerSm 32 maxThreadsPerBlock 1024 maxBlockDimX 1024 maxBlockDimY 1024 "
    "maxBlockDimZ 64 maxGridDimX 2147483647 maxGridDimY 65535 maxGridDimZ 65535 "
    "computeMajor 9 computeMinor 0 smMajor 9 smMinor 0"
)
H100 |= {name: int(value) for name, value in _NUMBERS.items()}
# Names of exports up to 2021, and those of today.
_OLD_NAMES = _pairs(
    "pciBusId busLocation globalMemorySize totalMemory constantMemorySize constantMemory "
    "numThreadsPerWarp threadsPerWarp numMemcpyEngines asyncEngines numMultiprocessors smCount "
    "maxWarpsPerMultiprocessor maxWarpsPerSm maxBlocksPerMultiprocessor maxBlocksPerSm "
    "maxSharedMemoryPerBlock maxShmemPerBlock maxSharedMemoryPerMultiprocessor maxShmemPerSm "
    "maxRegistersPerMultiprocessor maxRegistersPerSm computeCapabilityMajor computeMajor "
    "computeCapabilityMinor computeMinor deviceId cuDevice"
)


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
        utc_epoch_ns: int = UTC_EPOCH_NS,
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
        self._correlations: Counter[int] = Counter()
        self._domains: Counter[int] = Counter()

    def process(self, pid: int = 1000, name: Text = "python") -> Process:
        process = Process(pid)
        if pid not in self.processes:
            self.processes[pid] = process
            if self.has("PROCESSES"):
                self.add("PROCESSES", globalPid=process.global_pid, pid=pid, name=name)
        return process

    def thread_name(
        self, name: Text, tid: int | None = None, process: Process | None = None
    ) -> None:
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

    def _uuid(self, gpu_id: int) -> str:
        host = enumerate(self.hostname or "")
        seed = sum(ord(letter) * 131**place for place, letter in host) % 0xFFFFFF
        return f"{seed:08x}-0000-4000-8000-{gpu_id:012x}"

    def gpu(self, gpu_id: int = 0, **columns: object) -> None:
        """One GPU of the machine, an H100 unless `columns` says otherwise."""
        values = H100 | dict.fromkeys(("id", "pwGpuId", "cuDevice"), gpu_id)
        values["busLocation"] = f"0000:{0x1B + 0x10 * gpu_id:02x}:00.0"
        values["uuid"] = self._uuid(gpu_id)
        if self.generation == schema.OLD:
            values |= columns
            old = values | {name: values[new] for name, new in _OLD_NAMES.items()}
            # kB/s and kHz
            rates = {"globalMemoryBandwidth": "memoryBandwidth", "coreClockRate": "clockRate"}
            old |= {name: int(str(values[new])) // 1000 for name, new in rates.items()}
            old["pid"] = next(iter(self.processes), 1000)
            self.add("TARGET_INFO_CUDA_GPU", **old)
            columns = {"deviceId": values["cuDevice"]}
        self.add("TARGET_INFO_GPU", columns, **values)

    def cuda_device(self, gpu_id: int = 0, device: int = 0, process: Process | None = None) -> None:
        """Say which GPU a process sees as that CUDA device, with its context and streams."""
        pid = self._process(process).pid
        if self.has("TARGET_INFO_CUDA_DEVICE"):
            row = {"uuid": self._uuid(gpu_id), "pid": pid, "numMultiprocessors": H100["smCount"]}
            self.add("TARGET_INFO_CUDA_DEVICE", row, gpuId=gpu_id, cudaId=device)
        context = {"hwId": 0, "vmId": 1, "processId": pid, "deviceId": device, "contextId": 1}
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
        self._correlations[pid] += 1
        return self._correlations[pid]

    def _process(self, process: Process | None) -> Process:
        return process or next(iter(self.processes.values()), None) or self.process()

    def _finish(self) -> None:
        super()._finish()
        if self.generation == schema.OLD:
            return
        stamp = datetime.fromtimestamp(self.utc_epoch_ns // 10**9, UTC)
        times = dict.fromkeys(("utcTime", "localTime"), stamp.replace(tzinfo=None).isoformat())
        clock = {"utcEpochNs": self.utc_epoch_ns, "systemClockNs": self.system_clock_ns}
        self.add("TARGET_INFO_SESSION_START_TIME", **times, **clock)
        duration = self._last_end() if self.duration_ns is None else self.duration_ns
        # Older exporters counted from a clock of their own.
        start = self.system_clock_ns if self.generation == schema.NEW else 1_332_298_147
        row = {"globalVid": VM_ID, "duration": duration, "startTime": start}
        self.add("ANALYSIS_DETAILS", row, stopTime=start + duration)
        self._system_environment()
        self._metadata()

    def _last_end(self) -> int:
        ends = [0]
        for name, rows in self._rows.items():
            places = [n for n, column in enumerate(self.tables[name]) if column.name == "end"]
            found = (row[place] for place in places for row in rows)
            ends += [value for value in found if isinstance(value, int)]
        return max(ends)

    def _system_environment(self) -> None:
        between = ";" if self.generation == schema.NEW else "\0"
        pairs = between.join(f"{key}={value}" for key, value in self.environment.items())
        facts = [
            ("CpuDescription", 13, "Simulated CPU"),
            ("NvDriverVersion", 205, "595.71.05"),
            ("OsDescription", 605, "Simulated Linux"),
            ("DeviceEnvironment", 610, pairs),
            ("CudaDriverVersion", 611, "13020"),
        ]
        facts += [("Hostname", 619, self.hostname)] if self.hostname is not None else []
        for name, number, value in facts:
            row = {"globalVid": VM_ID, "devStateName": "Local (CLI)", "name": name}
            self.add("TARGET_INFO_SYSTEM_ENV", row, nameEnum=number, value=value)

    def _metadata(self) -> None:
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
