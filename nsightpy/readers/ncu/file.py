"""The outside of a .ncu-rep: is it one, is it whole, which ncu made it, which processes ran.

Magic, a FileHeader, then blocks to the end of the file, each a header and its payload, as the
FileFormat .proto files describe that ship with Nsight Compute. Of the session only versions and
the process of each result are read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import beginning, file_errors, has_suffix, size_of_regular

MAGIC = b"NVR\x00"
# The last is that of the first releases, before 2020.
NCU_SUFFIXES = (".ncu-rep", ".nsight-cuprof-report")
TARGET_VERSION = "Nsight Compute Target"
# Fields of a BlockHeader.
SOURCE_COUNT, SESSION, PAYLOAD_SIZE, PROCESS = 1, 3, 5, 6
RESULT_COUNTS = (2, 7, 8, 9)
VERSION_INFO = 8

_COPY = "copy it again, and let ncu finish writing it."
_Message: TypeAlias = "dict[int, list[int | bytes]]"


class FileFacts(NamedTuple):
    """ncu's version ("" in the oldest), and of each result the process: id, name of executable."""

    tool_version: str
    processes: list[tuple[int, str]]


def is_ncu_rep(path: Path) -> bool:
    """Whether a file is a report of Nsight Compute: by its suffix, or by its first bytes."""
    return has_suffix(path, NCU_SUFFIXES) or beginning(path, len(MAGIC)) == MAGIC


def file_facts(path: Path) -> FileFacts:
    """Walk the blocks of a report to its end.

    Raises ReportError when the file is missing, empty, no Nsight Compute report or cut short.
    """
    with file_errors(path):
        size = size_of_regular(path)
        with path.open("rb") as file:
            return _facts(path, file, size)


def _facts(path: Path, file: BinaryIO, size: int) -> FileFacts:
    start = file.read(len(MAGIC))
    if not start:
        raise ReportError(path, "is empty", "ncu writes it when the program has ended; " + _COPY)
    if start != MAGIC:
        advice = "give a .ncu-rep file, or what `ncu --import REPORT --csv --page raw` prints."
        raise ReportError(path, "is no Nsight Compute report", advice)
    version, processes = "", list[tuple[int, str]]()
    try:
        at = _end(file, len(MAGIC), size)
        _fields(file.read(at - file.tell()))
        while at < size:
            end = _end(file, at, size)
            header = _fields(file.read(end - file.tell()))
            results = sum(_number(header, count) for count in RESULT_COUNTS)
            at = end + _number(header, PAYLOAD_SIZE)
            # the library ends this process where a message of a payload has another size
            for _ in range(_number(header, SOURCE_COUNT) + results):
                end = _end(file, end, min(at, size))
            if not end <= at <= size:
                raise EOFError
            processes += [_process(header)] * results
            version = _version(header) or version
    except (EOFError, ValueError):
        problem = f"is cut short or damaged: {size:,} bytes are there, and its blocks want more"
        raise ReportError(path, problem, _COPY) from None
    return FileFacts(version, processes)


def _end(file: BinaryIO, at: int, most: int) -> int:
    """Where the message ends that stands there after its length, a little-endian u32 that is read.

    Raises EOFError where that is beyond `most`.
    """
    file.seek(at)
    length = file.read(4)
    end = at + 4 + int.from_bytes(length, "little")
    if len(length) < 4 or end > most:
        raise EOFError
    return end


def _version(header: _Message) -> str:
    """The version of the ncu that profiled, where this block tells: 2025.3.1.0."""
    for session in _messages(header, SESSION):
        for info in _messages(session, VERSION_INFO):
            if _text(info, 1) == TARGET_VERSION:
                return _text(info, 2).split(" ")[0]
    return ""


def _process(header: _Message) -> tuple[int, str]:
    for process in _messages(header, PROCESS):
        path = _text(process, 3).replace("\\", "/")
        return _number(process, 1), path.rpartition("/")[2]
    return 0, ""


def _number(message: _Message, field: int) -> int:
    return next((value for value in message.get(field, []) if isinstance(value, int)), 0)


def _text(message: _Message, field: int) -> str:
    raws = (value for value in message.get(field, []) if isinstance(value, bytes))
    return next(raws, b"").decode("utf-8", "replace")


def _messages(message: _Message, field: int) -> Iterator[_Message]:
    yield from (_fields(raw) for raw in message.get(field, []) if isinstance(raw, bytes))


def _fields(data: bytes) -> _Message:
    """The fields of a protobuf message: numbers, and bytes for everything with a length.
    https://protobuf.dev/programming-guides/encoding/"""
    fields: _Message = {}
    offset = 0
    while offset < len(data):
        key, offset = _varint(data, offset)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, offset = _varint(data, offset)
        elif kind == 2:
            length, offset = _varint(data, offset)
            value, offset = data[offset : offset + length], offset + length
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value, offset = data[offset : offset + width], offset + width
        else:
            raise ValueError(f"no protobuf field of kind {kind}")
        if offset > len(data):
            raise ValueError("a protobuf field runs past its message")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while offset < len(data) and shift < 70:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, offset
    raise ValueError("a protobuf number has no end")
