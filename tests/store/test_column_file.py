"""Files of columns: what is written comes back, as narrow as it can be; damage is told."""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nsightpy.frames import ColumnData, Labels, constant
from nsightpy.store.column_file import Column, ColumnFile, narrow, write

LEAST, MOST = -(2**63), 2**63 - 1


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def labels(codes: list[int], *names: str) -> Labels:
    return Labels(np.array(codes, dtype=np.int32), names)


@st.composite
def numbers(draw: st.DrawFn) -> np.ndarray:
    """Whole numbers of any width, near any offset."""
    low = draw(st.sampled_from((0, 1, -1, 2**40, LEAST, MOST - 2**33)))
    width = draw(st.sampled_from((0, 1, 255, 256, 2**16 - 1, 2**16, 2**32 - 1, 2**32)))
    anywhere = st.lists(st.integers(LEAST, MOST), max_size=20)
    near = st.lists(st.integers(max(low, LEAST), min(low + width, MOST)), max_size=20)
    return ints(*draw(st.one_of(anywhere, near)))


# Any text, halves of pairs by themselves and beside each other as well.
texts = st.text(st.characters(), max_size=8) | st.sampled_from(("\ud800\udc00", "\udcff", "\0", ""))
names = st.lists(texts, min_size=1, max_size=300).map(tuple)


@st.composite
def named(draw: st.DrawFn) -> Labels:
    values = draw(names)
    codes = draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
    return labels(codes, *values)


floats = st.lists(st.floats(), max_size=20).map(lambda values: np.array(values, dtype=np.float64))
same = st.builds(constant, st.integers(LEAST, MOST), st.integers(0, 20))
nothing = st.sampled_from((ints(), np.array([], dtype=np.float64), labels([]), labels([], "a")))
columns = st.one_of(numbers(), named(), floats, same, nothing)
parts = st.builds(slice, *([st.none() | st.integers(-25, 25)] * 2))


def assert_parts(column: Column, data: ColumnData, part: slice) -> None:
    """A column has the rows of its data: all, a stretch of them, those of a mask."""
    assert_same(column.data(), data)
    for rows in (part, np.arange(len(data)) % 3 == 0):
        some = Labels(data.codes[rows], data.values) if isinstance(data, Labels) else data[rows]
        assert_same(column.data(rows), some)


def assert_same(found: ColumnData, expected: ColumnData) -> None:
    if isinstance(expected, Labels):
        assert isinstance(found, Labels)
        assert found.codes.dtype == np.int32
        assert found.values == expected.values
        assert found.codes.tolist() == expected.codes.tolist()
        return
    assert not isinstance(found, Labels)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@given(held=st.lists(columns, max_size=4), part=parts)
def test_columns_come_back(held: list[ColumnData], part: slice) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        header = {"notes": {"a": ["\ud800", "note"]}}
        in_memory = {f"column {n}": narrow(data) for n, data in enumerate(held)}
        write(path, header, in_memory)
        for trusted in (True, False):
            file = ColumnFile(path, trusted=trusted)
            assert file.header == header
            assert list(file.names) == list(in_memory)
            for name, data in zip(file.names, held, strict=True):
                assert_parts(file.column(name), data, part)
                assert_parts(in_memory[name], data, part)


@pytest.mark.parametrize(
    "data, bytes_a_row",
    [
        (ints(7, 7, 7), 0),
        (constant(MOST, 1000), 0),
        (ints(LEAST, LEAST + 255), 1),
        (ints(-1, 255), 2),
        (ints(2**40, 2**40 + 2**16 - 1), 2),
        (ints(2**40, 2**40 + 2**16), 4),
        (ints(0, 2**32), 8),
        (ints(LEAST, MOST), 8),
        (labels([0, 0, 0], "a", "b"), 0),
        (labels([0, 1, 0], "a", "b"), 1),
        (labels([0, 299], *map(str, range(300))), 2),
    ],
)
def test_columns_are_narrow(data: ColumnData, bytes_a_row: int) -> None:
    held = narrow(data).numbers
    assert (0 if held is None else held.dtype.itemsize) == bytes_a_row


SAMPLE: Mapping[str, ColumnData] = {
    "start_ns": ints(5, 900, 70_000),
    "name": labels([0, 1, 0], "a", "\ud800"),
    "value": np.array([0.5, np.nan, -1.0]),
    "pid": constant(7, 3),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.columns"
    write(path, {"of": "this"}, {name: narrow(data) for name, data in SAMPLE.items()})
    return path


def assert_damaged_or_same(path: Path) -> bool:
    """Whether a file was taken for one that was written; then it holds what was written."""
    try:
        file = ColumnFile(path)
        found = {name: file.column(name).data() for name in file.names}
    except (OSError, ValueError):
        return False
    assert (file.header, list(found)) == ({"of": "this"}, list(SAMPLE))
    for name, data in SAMPLE.items():
        assert_same(found[name], data)
    return True


def test_any_byte_flipped_is_told(path: Path) -> None:
    whole = path.read_bytes()
    taken = 0
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= (1, 0x80, 0xFF)[place % 3]
        path.write_bytes(damaged)
        taken += assert_damaged_or_same(path)
    assert taken < 4 * 8  # what lies between columns


def test_any_end_is_told(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert not assert_damaged_or_same(path)
    for more in (b"\0", whole):
        path.write_bytes(whole + more)
        assert_damaged_or_same(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    assert not assert_damaged_or_same(tmp_path)
    for target in ("/dev/zero", "circle", "nowhere", "."):
        (tmp_path / "circle").unlink(missing_ok=True)
        (tmp_path / "circle").symlink_to(target)
        assert not assert_damaged_or_same(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    assert not assert_damaged_or_same(tmp_path / "pipe")


def test_a_file_is_its_owners_and_never_written_over(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write(path, {}, {})
    assert assert_damaged_or_same(path)
