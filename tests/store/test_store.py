"""A store answers as if it were not there: whatever was asked before, whatever became of it."""

import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nsightpy.frames import Frame, Labels
from nsightpy.frames.columns import SPAN, Schema, float_column, int_column, label_column
from nsightpy.store import cache as store_cache
from nsightpy.store.store import COUNTED, FrameSource, Imported, Store
from tests.support.store_damage import DAMAGES, damage, whole_files

NUMBERS = (int_column("bytes", "bytes", "size"), int_column("pid", "", "process"))
OTHERS = (float_column("value", "", "measured"), label_column("name", "name"))
SCHEMA = Schema("things", "made up", (*SPAN, *NUMBERS, *OTHERS))
SMALL = Schema("small", "made up, in the order of the file", (*NUMBERS, *OTHERS))
COLUMNS = {schema.name: schema.names for schema in (SCHEMA, SMALL)}
FRAME_NOTE, NAME_NOTE = "rows are left out", "rows have no name"


@dataclass(frozen=True)
class Facts:
    """Something about the report as a whole."""

    host: str
    pids: list[int]
    names: dict[int, str]


@dataclass
class Report:
    """A report in memory whose imports are counted."""

    seed: int
    rows: int = 40
    imports: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        start = random.integers(0, max(self.rows // 4, 1), self.rows)
        self.raw = Frame(
            {
                "start_ns": start,
                "end_ns": start + random.integers(0, 3, self.rows),
                "bytes": random.integers(-1, 3, self.rows),
                "pid": random.integers(0, 2, self.rows),
                "value": np.where(random.random(self.rows) < 0.5, np.nan, 0.5),
                "name": Labels(random.integers(0, 3, self.rows).astype(np.int32), ("b", "a", "")),
            }
        )

    def read(self, columns: Sequence[str]) -> Imported:
        self.imports.append(tuple(columns))
        made = dict(self.raw.select(name for name in columns if name != COUNTED))
        notes = {"": (FRAME_NOTE,)} | ({"name": (NAME_NOTE,)} if "name" in columns else {})
        if COUNTED in columns:
            made[COUNTED] = (self.raw.ints("bytes") >= 0).astype(np.int64)
        return Imported(Frame(made), notes)

    def source(self, frame: str) -> FrameSource:
        if frame == "small":
            return FrameSource(SMALL, self.read)
        return FrameSource(SCHEMA, self.read, "start_ns", True, ("pid",))

    def facts(self) -> Facts:
        return Facts(f"host {self.seed}", [3, 1], {3: "a\ud800", 1: ""})


def plain(frame: Frame) -> dict[str, list[object]]:
    """A frame as texts, by which missing values are equal."""
    return {name: [str(value) for value in data] for name, data in frame.items()}


def ask(store: Store, report: Report, frame: str, columns: Sequence[str]) -> object:
    return plain(store.frame(report.source(frame), columns)), set(store.notes)


def spoil(folder: Path, what: str, seed: int, foreign: Path) -> None:
    """Damage any file of a store that has some."""
    chance = random.Random(seed)
    if files := whole_files(folder):
        damage(chance.choice(files), what, chance, foreign)


questions = st.sampled_from(list(COLUMNS)).flatmap(
    lambda frame: st.tuples(
        st.just(frame), st.lists(st.sampled_from(COLUMNS[frame]), min_size=1, unique=True)
    )
)
steps = st.one_of(
    questions,
    st.just("facts"),
    st.just("another process"),
    st.just("close"),
    st.tuples(st.sampled_from(sorted(DAMAGES)), st.integers(0, 2**32)),
)


@settings(max_examples=40)
@given(steps=st.lists(steps, max_size=14), seed=st.integers(0, 3))
def test_answers_are_those_without_a_store(steps: list[object], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report, other = Report(seed), Report(seed + 1)
        store, bare = Store(Path(folder) / "a.columns"), Store(None)
        foreign = Store(Path(folder) / "b.columns")
        for frame in COLUMNS:
            foreign.frame(other.source(frame))
        foreign.facts(Facts, other.facts)
        for step in steps:
            if step == "facts":
                assert store.facts(Facts, report.facts) == report.facts()
            elif step == "close":
                store.close()
                bare.close()
            elif step == "another process":
                store, bare = Store(store.folder), Store(None)
            else:
                assert isinstance(step, tuple)
                what, more = step
                if what in DAMAGES:
                    spoil(Path(folder) / "a.columns", what, more, Path(folder) / "b.columns")
                    store, bare = Store(store.folder), Store(None)
                else:
                    assert ask(store, report, *step) == ask(bare, report, *step)
        assert store.problem == ""
        assert [path.name for path in Path(folder).iterdir() if path.suffix == ".part"] == []


@given(seed=st.integers(0, 100), rows=st.sampled_from((0, 1, 2, 40)))
def test_rows_are_counted_in_order_and_a_part_is_a_part(seed: int, rows: int) -> None:
    report = Report(seed, rows)
    counted = report.raw.take(report.raw.ints("bytes") >= 0)
    expected = plain(counted.ordered("start_ns"))
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "a.columns"
        for store in (Store(None), Store(kept), Store(kept)):
            assert plain(store.frame(report.source("things"))) == expected
            assert plain(store.frame(report.source("small"))) == plain(
                report.raw.select(SMALL.names)
            )
            for part in (slice(0), slice(3, 9), slice(-4, None), slice(1000)):
                found = plain(store.frame(report.source("things"), rows=part))
                assert found == {name: values[part] for name, values in expected.items()}


def test_a_column_is_imported_once(tmp_path: Path) -> None:
    report = Report(1)
    for _ in range(3):
        store = Store(tmp_path / "a.columns")
        for columns in (["bytes", "name"], ["name"], ["value", "pid"], SCHEMA.names):
            store.frame(report.source("things"), columns)
    assert sorted(name for columns in report.imports for name in columns) == sorted(
        (*SCHEMA.names, COUNTED)
    )


def test_what_is_asked_wrongly_or_fails_is_no_damage(tmp_path: Path) -> None:
    def fails(_: Sequence[str]) -> Imported:
        raise ValueError("of the reader")

    store = Store(tmp_path / "a.columns")
    with pytest.raises(KeyError, match="things has no column x"):
        store.frame(Report(1).source("things"), ["pid", "x"])
    with pytest.raises(ValueError, match="of the reader"):
        store.frame(FrameSource(SMALL, fails))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("frame", list(COLUMNS))
@pytest.mark.parametrize("gone", ["first", "last"])
def test_what_the_first_file_said_is_said_again(tmp_path: Path, gone: str, frame: str) -> None:
    report, folder = Report(1), tmp_path / "a.columns"
    for columns in (["pid"], ["name"]):
        Store(folder).frame(report.source(frame), columns)
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    files[0 if gone == "first" else -1].unlink()
    again = Store(folder)
    again.frame(report.source(frame), ["name"])
    assert set(again.notes) == {FRAME_NOTE, NAME_NOTE}


def test_columns_whose_bytes_were_damaged_are_imported_again(tmp_path: Path) -> None:
    report, folder = Report(1), tmp_path / "a.columns"
    for _ in range(2):
        for frame, columns in COLUMNS.items():
            expected = ask(Store(None), report, frame, columns)
            assert ask(Store(folder), report, frame, columns) == expected
        for file in folder.iterdir():
            data = file.read_bytes()
            file.unlink()
            file.write_bytes(bytes([data[0] ^ 1]) + data[1:])


def test_a_store_removed_in_use_is_made_again(tmp_path: Path) -> None:
    things, folder = Report(1).source("things"), tmp_path / "a.columns"
    store = Store(folder)
    store.frame(things, ["pid"])
    shutil.rmtree(folder)
    for each in (store, Store(folder)):
        assert plain(each.frame(things)) == plain(Store(None).frame(things))


def test_the_report_in_use_is_not_trimmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", "1")
    monkeypatch.setattr(store_cache, "GRACE_S", 0)
    monkeypatch.setattr(store_cache, "_handed_out", set())
    report = Report(1)
    folders = [tmp_path / f"report-{n:024x}.columns" for n in range(3)]
    for folder in folders:
        Store(folder).frame(report.source("things"))
    assert all(folder.is_dir() for folder in folders), "all are of this process"
    monkeypatch.setattr(store_cache, "_handed_out", set())
    last = tmp_path / f"report-{9:024x}.columns"
    Store(last).frame(report.source("things"))
    assert sorted(tmp_path.iterdir()) == [last]


@pytest.mark.parametrize("kept", [True, False], ids=["in files", "in memory"])
def test_facts_are_made_once_and_their_notes_are_said_again(tmp_path: Path, *, kept: bool) -> None:
    made: list[Facts] = []
    store = Store(tmp_path / "a.columns" if kept else None)

    def make() -> Facts:
        store.frame(Report(1).source("things"))
        made.append(Report(1).facts())
        return made[-1]

    for again in (store, store, *([Store(store.folder)] * kept)):
        assert again.facts(Facts, make) == Report(1).facts()
        assert set(again.notes) == {FRAME_NOTE, NAME_NOTE}
    assert len(made) == 1
