"""What an export says about its capture: times, versions, host, processes, GPUs, diagnostics.

Exports carry the whole environment of the profiled job; none of it is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.limits import clock_reading
from nsightpy.readers.nsys.events import OF_PROCESS
from nsightpy.readers.nsys.table_frames import Source, reader
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

NO_UUID = re.compile(r"^[0\-]*$")
_NUMBER = re.compile(r"-?\d{1,19}")
_EXPORT_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_VERSION, _SCHEMA_VERSION = "EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION"
_SHIFT, _UUID = "EXPORT_CONFIG_TIME_SHIFT", "PROFILING_SESSION_UUID"
_HOST, _DRIVER = "Hostname", "NvDriverVersion"
# Columns of the tables of GPUs.
_GPU_TEXTS = ("name", "uuid", "busLocation")
_GPU_NUMBERS = (
    *("id", "deviceId", "gpuId", "cudaId", "cuDevice", "pid"),
    *("smCount", "numMultiprocessors", "totalMemory", "globalMemorySize"),
    *("memoryBandwidth", "globalMemoryBandwidth", "clockRate", "coreClockRate"),
    *("computeMajor", "computeCapabilityMajor", "computeMinor", "computeCapabilityMinor"),
)


@dataclass(frozen=True)
class Session:
    """One capture. Times in ns; None where the export does not say.

    `utc_ns` is the UTC time at the report's time zero; an event's UTC time is
    utc_ns + start - shift_ns.
    """

    host: str
    export_version: str
    schema_version: str
    utc_ns: int | None
    shift_ns: int
    system_clock_ns: int | None
    duration_ns: int | None
    uuid: str
    driver: str = ""

    @property
    def start_utc(self) -> str | None:
        """UTC at the start of the session, ISO 8601 with microseconds."""
        if self.utc_ns is None:
            return None
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        moment = epoch + timedelta(microseconds=self.utc_ns // 1000)
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


# What GPUs of one model do not share.
_OF_ONE_GPU = frozenset(("id", "deviceId", "uuid", "busLocation"))


def session(export: NsysExport) -> Session:
    """The capture's own description, from whichever of its tables exist."""
    keys = (_VERSION, _SCHEMA_VERSION, _SHIFT)
    settings = next(filter(None, (_settings(export, t, *keys) for t in _EXPORT_TABLES)), {})
    utc, clock = _least(export, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "systemClockNs")
    system = _settings(export, "TARGET_INFO_SYSTEM_ENV", _HOST, _DRIVER)
    shift = settings.get(_SHIFT, "")
    return Session(
        host=system.get(_HOST, ""),
        export_version=settings.get(_VERSION, ""),
        schema_version=settings.get(_SCHEMA_VERSION, ""),
        utc_ns=clock_reading(utc),
        shift_ns=clock_reading(int(shift) if _NUMBER.fullmatch(shift) else None) or 0,
        system_clock_ns=clock_reading(clock),
        duration_ns=_least(export, "ANALYSIS_DETAILS", "duration")[0],
        uuid=_settings(export, "META_DATA_CAPTURE", _UUID).get(_UUID, ""),
        driver=system.get(_DRIVER, ""),
    )


def process_names(export: NsysExport, pids: Iterable[int]) -> dict[int, str]:
    """The executable of each process, where the export knows it."""
    wanted = set(pids)
    rows = export.file.values("PROCESSES", ("pid",), ("name",))
    return {pid: name or "" for pid, name in rows if pid in wanted}


# What the profiler said.
diagnostics = reader(
    frames.DIAGNOSTICS,
    Source(
        "DIAGNOSTIC_EVENT",
        {"time_ns": "timestamp"},
        ids=OF_PROCESS,
        codes={
            "severity": ("severity", {1: "info", 2: "warning", 3: "error", 4: "verbose"}),
            "source": ("source", {1: "injection", 2: "daemon", 3: "analysis"}),
        },
        texts={"text": "text"},
        needs=("text",),
    ),
)


def devices(export: NsysExport) -> Frame:
    """The devices frame: one row per process and CUDA ordinal, or per ordinal in older exports."""
    gpus = _gpus(export, "TARGET_INFO_GPU")
    by_id = {gpu["deviceId"] if gpu["id"] is None else gpu["id"]: gpu for gpu in gpus}
    mapped = _gpus(export, "TARGET_INFO_CUDA_DEVICE")
    if mapped:
        rows = [(m["pid"], m["cudaId"], by_id.get(m["gpuId"], {}), m) for m in mapped]
    elif cuda := _gpus(export, "TARGET_INFO_CUDA_GPU"):
        rows = [(c["pid"], c["deviceId"], by_id.get(c["deviceId"], {}), c) for c in cuda]
    else:
        # graphics adapters that run no CUDA have no multiprocessors
        gpus = [gpu for gpu in gpus if gpu["smCount"]] or gpus
        # -1, also as 32 bits, is none
        given = [gpu["cuDevice"] for gpu in gpus]
        ordinals = [n if n is not None and 0 <= n < 2**31 else None for n in given]
        rows = [
            (0, ordinal or 0, gpu, {})
            for gpu, ordinal in zip(gpus, ordinals, strict=True)
            if ordinal is not None or len(gpus) == 1
        ]
        if len({gpu["name"] for gpu in gpus}) == 1:  # which one it is does not matter then
            model = {name: value for name, value in gpus[0].items() if name not in _OF_ONE_GPU}
            rows += [(0, n, model, {}) for n in range(len(gpus)) if n not in (r[1] for r in rows)]
    described = (_device(pid, ordinal, gpu, extra) for pid, ordinal, gpu, extra in rows)
    return Frame.of_rows(frames.DEVICES, sorted(described, key=itemgetter(0, 1, 2)))


def _gpus(export: NsysExport, name: str) -> list[dict[str, Any]]:
    """The rows of a table about GPUs; None where it does not say."""
    names = (*_GPU_NUMBERS, *_GPU_TEXTS)
    rows = export.file.values(name, _GPU_NUMBERS, _GPU_TEXTS)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _device(
    pid: int | None, ordinal: int | None, gpu: Mapping[str, Any], extra: Mapping[str, Any]
) -> tuple[object, ...]:
    """A row of the devices frame."""
    uuid = str(extra.get("uuid") or gpu.get("uuid") or "")
    old_bandwidth, old_clock = (
        1000 * kilo if (kilo := extra.get(name) or 0) < 2**53 else 0
        for name in ("globalMemoryBandwidth", "coreClockRate")
    )
    ids = (gpu.get("id"), gpu.get("deviceId"), extra.get("gpuId"), -1)
    return (
        pid or 0,
        ordinal or 0,
        next(each for each in ids if each is not None),
        str(gpu.get("name") or extra.get("name") or ""),
        "" if NO_UUID.match(uuid) else uuid,
        str(gpu.get("busLocation") or ""),
        extra.get("numMultiprocessors") or gpu.get("smCount") or 0,
        gpu.get("totalMemory") or extra.get("globalMemorySize") or 0,
        gpu.get("memoryBandwidth") or old_bandwidth,
        gpu.get("clockRate") or old_clock,
        gpu.get("computeMajor") or extra.get("computeCapabilityMajor") or 0,
        gpu.get("computeMinor") or extra.get("computeCapabilityMinor") or 0,
    )


def _settings(export: NsysExport, table: str, *keys: str) -> dict[str, str]:
    """The wanted keys, and no others, of a name and value table."""
    wanted = sa.column("name").in_(keys)
    rows = export.file.values(table, (), ("name", "value"), wanted)
    return {key: value for key, value in rows if value is not None}


def _least(export: NsysExport, table: str, *columns: str) -> list[int | None]:
    """The smallest number of each column of a small table; None where there is none."""
    rows = export.file.values(table, columns)
    numbers = zip(*rows, strict=True) if rows else [()] * len(columns)
    return [min((n for n in values if n is not None), default=None) for values in numbers]
