"""One file of columns: each as narrow as its values allow, mapped and checked when it is used.

Layout: the columns' bytes, each at a multiple of 8; their description as JSON; its length and
checksum; the mark. A file that was not written to its end has no mark.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import ColumnData, Ints, Labels, is_constant, taken

_MARK = b"nsightpy columns"
_END = struct.Struct("<QL")
_ALIGNED = 8
_NARROW = tuple(np.dtype(f"<u{width}") for width in (1, 2, 4))

# What a file says of itself beside its columns.
Header: TypeAlias = Mapping[str, Any]
# Some rows of a column: a stretch of them, or a mask.
Rows: TypeAlias = "slice | NDArray[np.bool_]"


class DamagedError(ValueError):
    """A file does not hold what was written to it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is kept: `low` added to each of its numbers; None where all are `low`.

    `names`: the values of codes; None for numbers.
    """

    rows: int
    numbers: NDArray[Any] | None
    low: int = 0
    names: tuple[str, ...] | None = None

    def data(self, rows: Rows | None = None) -> ColumnData:
        """The column, or some of its rows, as frames have it."""
        part = slice(None) if rows is None else rows
        if self.names is not None:
            codes = self._whole(part, np.dtype(np.int32))
            return Labels(cast("NDArray[np.int32]", codes), self.names)
        if self.numbers is not None and self.numbers.dtype.kind == "f":
            return self.numbers[part]
        return cast(Ints, self._whole(part, np.dtype(np.int64)))

    def _whole(self, part: Rows, kind: np.dtype[Any]) -> NDArray[Any]:
        if self.numbers is None:
            same = np.broadcast_to(kind.type(self.low), self.rows)
            return same[part] if isinstance(part, slice) else taken(same, part)
        made = self.numbers[part].astype(kind, copy=False)
        if self.low:
            made += kind.type(self.low)  # narrow numbers alone have a low one: made is a copy
        return made


def narrow(data: ColumnData) -> Column:
    """A column with its numbers as narrow as they can be."""
    if isinstance(data, Labels):
        if len(data.codes) and (is_constant(data.codes) or not data.codes.any()):
            return Column(len(data), None, int(data.codes[0]), data.values)
        return Column(len(data), _narrowed(data.codes, 0, len(data.values)), 0, data.values)
    if data.dtype.kind == "f" or not len(data):
        return Column(len(data), np.ascontiguousarray(data))
    low, high = (int(data[0]),) * 2 if is_constant(data) else (int(data.min()), int(data.max()))
    if low == high:
        return Column(len(data), None, low)
    numbers = _narrowed(data, low, high)
    return Column(len(data), numbers, low if numbers.dtype.kind == "u" else 0)


def _narrowed(numbers: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """Numbers less `low` in the narrowest type that `high` fits; as they are where none is."""
    for kind in _NARROW:
        if high - low <= np.iinfo(kind).max and kind.itemsize < numbers.dtype.itemsize:
            return (numbers - numbers.dtype.type(low)).astype(kind) if low else numbers.astype(kind)
    return np.ascontiguousarray(numbers)


def write(path: Path, header: Header, columns: Mapping[str, Column]) -> None:
    """Write columns of one frame, and their header. Raises OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        about: dict[str, Any] = {"header": header, "columns": {}}
        for name, column in columns.items():
            names = None
            if column.names is not None:
                text = json.dumps(column.names, ensure_ascii=False).encode("utf-8", "surrogatepass")
                names = _put(file, np.frombuffer(text, dtype=np.uint8))
            about["columns"][name] = {
                "rows": column.rows,
                "low": column.low,
                "numbers": None if column.numbers is None else _put(file, column.numbers),
                "names": names,
            }
        text = json.dumps(about).encode()
        file.write(text)
        file.write(_END.pack(len(text), zlib.crc32(text)))
        file.write(_MARK)


def _put(file: IO[bytes], numbers: NDArray[Any]) -> list[Any]:
    """Type, place, length and checksum of an array that was written."""
    file.write(b"\0" * (-file.tell() % _ALIGNED))
    at = file.tell()
    written = numbers.data.cast("B") if numbers.size else b""  # of no rows there is no view
    file.write(written)
    return [numbers.dtype.str, at, len(written), zlib.crc32(written)]


class ColumnFile:
    """A file of columns that was written to its end. Raises OSError or ValueError for others.

    `trusted`: this process wrote it, and need not check it.
    """

    def __init__(self, path: Path, *, trusted: bool = False) -> None:
        self._trusted = trusted
        self._columns: dict[str, Column] = {}
        if not path.is_file():  # who opens a pipe waits
            raise DamagedError("no file")
        with path.open("rb") as file:
            self._bytes = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        tail = len(self._bytes) - _END.size - len(_MARK)
        if tail < 0 or self._bytes[-len(_MARK) :] != _MARK:
            raise DamagedError("not written to its end")
        length, checksum = _END.unpack_from(self._bytes, tail)
        text = bytes(self._bytes[max(tail - length, 0) : tail])
        if zlib.crc32(text) != checksum:
            raise DamagedError("damaged")
        about = json.loads(text)
        self.header: Header = about["header"]
        self._about: dict[str, dict[str, Any]] = about["columns"]
        self.names = tuple(self._about)

    def column(self, name: str) -> Column:
        """A column. Raises DamagedError where its bytes are not those that were written."""
        if name not in self._columns:
            about = self._about[name]
            numbers, names = about["numbers"], about["names"]
            array = None if numbers is None else self._array(*numbers)
            values = None
            if names is not None:
                text = self._array(*names).tobytes().decode("utf-8", "surrogatepass")
                values = tuple(json.loads(text))
            self._columns[name] = Column(about["rows"], array, about["low"], values)
        return self._columns[name]

    def _array(self, kind: str, at: int, length: int, checksum: int) -> NDArray[Any]:
        held = self._bytes[at : at + length]
        if not self._trusted and zlib.crc32(held) != checksum:
            raise DamagedError("damaged")
        return np.frombuffer(held, dtype=np.dtype(kind))
