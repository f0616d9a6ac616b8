"""The columns of traces that were read once, kept in the user's cache directory.

An entry is a ZIP archive of one Feather file for each frame, and what the trace says of itself as
JSON; it is stored, not packed, so that a frame is found without reading the others. Checksums are
ZIP's. It holds nothing of the trace's header but GPUs, rank and versions.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, Frame, Labels
from nsightpy.readers.export.export_cache import (
    COLUMNS,
    building,
    cache_folder,
    entry_name,
    mark_used,
    publish,
    trim_cache,
)
from nsightpy.readers.torch.trace import Trace, TraceFacts, restored

# Changes whenever the reader or the layout does.
LAYOUT = "torch trace 5"
# Smaller files are read again as fast.
LEAST_BYTES = 256 * 1024
_FACTS = "facts.json"
_STEM = "trace"
K = TypeVar("K", np.int32, np.int64, np.float64)


class CachedTrace:
    """A trace in the cache; its frames are read on demand."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, ValueError (as msgspec does) or zipfile.BadZipFile for no whole entry."""
        self._path = path
        with zipfile.ZipFile(path) as archive:
            facts = msgspec.json.decode(archive.read(_FACTS), type=TraceFacts)
            self._names = set(archive.namelist())
        self.facts = replace(facts, notes=tuple(map(restored, facts.notes)))

    def __contains__(self, name: str) -> bool:
        return f"{name}.feather" in self._names

    def frame(self, name: str, columns: Sequence[str] | None = None) -> Frame:
        """A frame, or some of its columns. Raises OSError, ValueError or zipfile.BadZipFile."""
        import pyarrow as pa

        with zipfile.ZipFile(self._path) as archive:
            data = archive.read(f"{name}.feather")
        source = pa.BufferReader(data)
        names = pa.ipc.open_file(source).schema.names
        wanted = list(names if columns is None else columns)
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in wanted])
        batch = pa.ipc.open_file(source, options=options).get_batch(0)
        return Frame({name: _column(batch.column(name)) for name in wanted})


def cached(path: Path) -> CachedTrace | None:
    """The cache's entry for a trace file; None where there is none that can be used."""
    with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile):
        entry = _entry(path)
        if entry.is_file():
            return CachedTrace(mark_used(entry))
    return None


def keep(path: Path, trace: Trace) -> str:
    """Keep a trace's columns in the cache. Returns why not, where that is impossible."""
    try:
        if path.stat().st_size < LEAST_BYTES:
            return ""
        entry = _entry(path)
        with building(entry, lambda: None) as folder:
            if not entry.exists():
                made = folder / entry.name
                _write(made, trace)
                publish(made, entry)
        trim_cache(keep=entry)
    except ReportError as error:
        return f"the columns of the trace were not kept: {error.problem}"
    except OSError as error:
        return f"the columns of the trace were not kept: {error.strerror or error}"
    return ""


def _entry(path: Path) -> Path:
    return cache_folder() / entry_name(path, LAYOUT, kind=COLUMNS, stem=_STEM)


def _write(made: Path, trace: Trace) -> None:
    import pyarrow as pa

    made.touch(mode=0o600)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_FACTS, json.dumps(asdict(trace.facts)))
        for name, frame in trace.frames.items():
            batch = pa.RecordBatch.from_pydict({k: _array(column) for k, column in frame.items()})
            with (
                archive.open(f"{name}.feather", "w", force_zip64=True) as file,
                pa.ipc.new_file(file, batch.schema, options=options) as writer,
            ):
                writer.write_batch(batch)


def _array(column: ColumnData) -> Any:
    import pyarrow as pa

    if isinstance(column, Labels):
        values = [value.encode("utf-8", "surrogatepass") for value in column.values]
        return pa.DictionaryArray.from_arrays(
            pa.array(column.codes, pa.int32()), pa.array(values, pa.large_binary())
        )
    return pa.array(np.ascontiguousarray(column))


def _column(array: Any) -> ColumnData:
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        values = tuple(v.decode("utf-8", "surrogatepass") for v in array.dictionary.to_pylist())
        return Labels(_numbers(array.indices, np.int32), values)
    if pa.types.is_floating(array.type):
        return _numbers(array, np.float64)
    return _numbers(array, np.int64)


def _numbers(array: Any, kind: type[K]) -> NDArray[K]:
    """The values of an Arrow array without nulls, not copied (to_numpy imports pandas)."""
    width = np.dtype(kind).itemsize
    if len(array) == 0:
        return np.empty(0, dtype=kind)
    return np.frombuffer(array.buffers()[1], kind, len(array), width * array.offset)
