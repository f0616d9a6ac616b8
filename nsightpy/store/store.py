"""The columns of one report: imported from it on first use, mapped from files from then on.

What a question gets does not depend on what was asked before, in this process or another: a frame's
rows and their order are settled by the first import of any of its columns, and kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, Frame, Ints, Schema, sort_key
from nsightpy.frames.order import time_order
from nsightpy.store.cache import COLUMNS, alone, delete, made_folder, mark_used, publish, trim_cache
from nsightpy.store.column_file import Column, ColumnFile, DamagedError, Header, Rows, narrow, write

T = TypeVar("T")

# Asked for beside columns: which rows of a table can be counted (0 or 1).
COUNTED = "counted"
# The rows of the file in the frame's order; kept where they are not all, as they come.
_ROWS = "rows of the file"
_TELLING = ("start_ns", "end_ns", "bytes")


@dataclass(frozen=True)
class Imported:
    """Columns in the order of the file, and notes on each (those of "" are about the frame)."""

    frame: Frame
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)


# Gives the columns of a frame that it is asked for, and COUNTED where that is among them.
Importer: TypeAlias = Callable[[Sequence[str]], Imported]


@dataclass(frozen=True)
class FrameSource:
    """How a frame is imported, and its rows: by the column `order`, those that are `counted`.

    What nearly every question needs is imported `together`, in one pass.
    """

    schema: Schema
    read: Importer
    order: str | None = None
    counted: bool = False
    together: Sequence[str] = ()


class Store:
    """The columns of one report in a folder of the cache; without a folder, in memory.

    Where the folder cannot be written, what is imported stays in memory, and `problem` says why.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.problem = ""
        self.notes: dict[str, None] = {}
        # the columns of each frame that was asked for, or the file that holds them
        self._held: dict[str, dict[str, Column | ColumnFile]] = {}
        self._notes_on: dict[tuple[str, str], Sequence[str]] = {}
        self._facts: dict[str, Any] = {}
        self._used: WeakValueDictionary[tuple[str, str], Any] = WeakValueDictionary()
        self._is_alone = False
        if folder is not None and folder.is_dir():
            mark_used(folder)

    def close(self) -> None:
        """Let go of what is mapped; columns that only memory holds are imported again."""
        kept = {"notes": self.notes, "problem": self.problem}
        self.__dict__ |= Store(self.folder).__dict__ | kept

    def frame(
        self, source: FrameSource, columns: Sequence[str] | None = None, rows: Rows | None = None
    ) -> Frame:
        """The wanted columns of a frame, or of some of its rows; what is not there is imported.

        Raises KeyError for a column that the frame cannot have.
        """
        name = source.schema.name
        wanted = tuple(columns or source.schema.names)
        if unknown := sorted(column for column in wanted if column not in source.schema):
            raise KeyError(f"{name} has no column {', '.join(unknown)}")
        while True:
            try:
                self._import(source, wanted)
                data = {column: self._data(name, column, rows) for column in wanted}
            except DamagedError:  # a damaged file: what it held is imported again
                self._drop(name)
                continue
            for column in ("", *wanted):
                self.notes |= dict.fromkeys(self._notes_on.get((name, column), ()))
            return Frame(data)

    def facts(self, kind: type[T], make: Callable[[], T]) -> T:
        """Facts about the report as a dataclass: made once, kept beside the columns.

        What had to be said of the frames that they are made of is said whenever they are asked for.
        """
        import msgspec

        name = kind.__name__.lower()
        if name not in self._facts:
            header = self._header(name)
            if header is None:
                with self._alone():
                    header = self._header(name) or self._made(name, make)
            self.notes |= dict.fromkeys(header["notes"])
            value = header["value"]
            self._facts[name] = msgspec.convert(value, kind, strict=False, str_keys=True)
        facts: T = self._facts[name]
        return facts

    def _made(self, name: str, make: Callable[[], object]) -> Header:
        """Facts about the report, made and written."""
        import msgspec

        earlier, self.notes = self.notes, {}
        value = msgspec.to_builtins(make(), str_keys=True, enc_hook=str)
        header = {"value": value, "notes": [*self.notes]}
        self._write(name, header, {})
        self.notes = earlier | self.notes
        return header

    def _header(self, stem: str) -> Header | None:
        file = self._opened(stem)
        return None if file is None else file.header

    def _data(self, frame: str, column: str, rows: Rows | None) -> ColumnData:
        data: ColumnData | None = self._used.get((frame, column)) if rows is None else None
        if data is None:
            held = self._held[frame][column]
            stored = held if isinstance(held, Column) else held.column(column)
            data = stored.data(rows)
            if rows is None:
                self._used[frame, column] = data
        return data

    def _import(self, source: FrameSource, wanted: Sequence[str]) -> None:
        """Import those of the wanted columns that are not there yet, alone among all processes."""
        name = source.schema.name
        if name not in self._held:
            self._look(name)
        if self._held[name].keys() >= set(wanted):
            return
        with self._alone():
            self._look(name)  # another process may have imported meanwhile
            missing = [column for column in wanted if column not in self._held[name]]
            if not missing:
                return
            columns, notes = self._read(source, missing)
            if not columns:  # what gives them was imported meanwhile
                return
            header = {"notes": notes, "first": not self._held[name]}
            named = zlib.crc32("\n".join(sorted(columns)).encode())
            file = self._write(f"{name}-{named:08x}", header, columns)
            self._take(name, header, columns if file is None else dict.fromkeys(columns, file))

    def _read(
        self, source: FrameSource, missing: Sequence[str]
    ) -> tuple[dict[str, Column], dict[str, Sequence[str]]]:
        """The missing columns in the frame's order, and the notes on them."""
        name = source.schema.name
        first = not self._held[name]
        needed: list[str] = []
        if first:
            times = (source.order or "", *(_TELLING if source.counted else ()))
            needed = [column for column in times if column in source.schema]
            needed += [*((COUNTED,) if source.counted else ()), *source.together]
        imported = source.read(tuple(dict.fromkeys((*needed, *missing))))
        raw, notes = dict(imported.frame), dict(imported.notes)
        counted = raw.pop(COUNTED, None)

        def column(name: str) -> ColumnData:
            if name not in raw:
                more = source.read((name,))
                raw.update(more.frame)
                notes.update({**more.notes, **notes})
            return raw[name]

        columns: dict[str, Column] = {}
        rows = None
        if first:
            rows = _rows(source, counted, column)
            columns |= {} if rows is None else {_ROWS: narrow(rows)}
        elif _ROWS in self._held[name]:
            rows = Frame({_ROWS: self._data(name, _ROWS, None)}).ints(_ROWS)
        for each in list(raw):
            part = Frame({each: raw.pop(each)})  # one after the other: no two orders of all
            if each not in self._held[name]:
                columns[each] = narrow((part if rows is None else part.take(rows))[each])
        return columns, {c: n for c, n in notes.items() if c in columns or (first and not c)}

    def _write(self, stem: str, header: Header, columns: Mapping[str, Column]) -> ColumnFile | None:
        """A new file of the folder; None where there is none, or it cannot be written or mapped."""
        if self.folder is None or self.problem:
            return None
        file = self.folder / f"{stem}{COLUMNS}"
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            mark_used(self.folder)
            with made_folder(self.folder) as part:
                write(part / file.name, {**header, "file": f"{self.folder.name}/{stem}"}, columns)
                publish(part / file.name, file)
            trim_cache(keep=self.folder, written=file.stat().st_size)
            return ColumnFile(file, trusted=True)
        except (OSError, ReportError) as error:
            self._give_up(error)
            return None

    def _give_up(self, error: OSError | ReportError) -> None:
        """Go on in memory."""
        cause = error.__cause__ or error
        why = getattr(cause, "strerror", None) or cause
        self.problem = (
            f"What was read is not kept for the next question: the cache cannot be written ({why})."
        )

    def _look(self, frame: str) -> None:
        """Take over what the folder holds of a frame, all of it or nothing: the first file has the
        order of its rows, and what must be said of it as a whole."""
        self._held.setdefault(frame, {})
        files = [] if self.folder is None else sorted(self.folder.glob(_files_of(frame)))
        opened = [self._opened(file.stem) for file in files]
        whole = [held for held in opened if held is not None]
        if files and (len(whole) < len(files) or not any(held.header["first"] for held in whole)):
            self._drop(frame)
            return
        for held in whole:
            self._take(frame, held.header, dict.fromkeys(held.names, held))

    def _opened(self, stem: str) -> ColumnFile | None:
        """A file of the folder; None where there is no whole one that was written as this one."""
        if self.folder is None:
            return None
        try:
            held = ColumnFile(self.folder / f"{stem}{COLUMNS}")
        except (OSError, ValueError):
            return None
        # it calls itself by its report, and what it is of
        return held if held.header.get("file") == f"{self.folder.name}/{stem}" else None

    def _take(self, frame: str, header: Header, held: Mapping[str, Column | ColumnFile]) -> None:
        self._held[frame] = {**held, **self._held[frame]}
        self._notes_on |= {(frame, c): tuple(notes) for c, notes in header["notes"].items()}

    def _drop(self, frame: str) -> None:
        """Forget a frame of which a file is damaged, or lost: the others may not fit a new one."""
        assert self.folder is not None
        try:
            for file in self.folder.glob(_files_of(frame)):
                with suppress(FileNotFoundError):  # another process found the same
                    delete(file)
        except OSError as error:
            self._give_up(error)
            self.folder = None
        self._held[frame] = {}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Alone among all processes, as far as the file system has locks; again inside of it."""
        if self.folder is None or self.problem or self._is_alone:
            yield
            return
        with ExitStack() as held:
            try:
                held.enter_context(alone(self.folder))
            except ReportError as error:
                self._give_up(error)
            self._is_alone = True
            held.callback(setattr, self, "_is_alone", False)
            yield


def _files_of(frame: str) -> str:
    return f"{frame}-????????{COLUMNS}"


def _rows(
    source: FrameSource, counted: ColumnData | None, column: Callable[[str], ColumnData]
) -> Ints | None:
    """The rows of the file that a frame has, in its order; None where they are all, as they come.
    `column` is asked for those that tell rows of one time apart."""
    rows = None
    if isinstance(counted, np.ndarray) and not counted.all():
        rows = np.flatnonzero(counted)
    if source.order is None:
        return rows

    def key(chosen: Ints, name: str) -> NDArray[Any]:
        return sort_key(name, column(name), chosen if rows is None else rows[chosen])

    names = sorted(source.schema.names, key=lambda name: name != "end_ns")
    times = Frame({source.order: column(source.order)})
    starts = (times if rows is None else times.take(rows)).ints(source.order)
    order = time_order(starts, (partial(key, name=name) for name in names))
    return rows if order is None else order if rows is None else rows[order]
