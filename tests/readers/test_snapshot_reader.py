"""Memory snapshots are decoded with nothing run, within bounds, or refused with a reason."""

import copyreg
import datetime
import io
import pickle
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulator.memory import Training, snapshot, write_snapshot

import nsightpy
from nsightpy.errors import ReportError
from nsightpy.readers.torch import snapshot as snapshot_reader, snapshot_decoder
from nsightpy.readers.torch.snapshot import read_snapshot
from nsightpy.reports.one_file import MemorySnapshot
from nsightpy.reports.opening import is_snapshot_file

PROTOCOLS = range(6)
REFUSED = r"is refused: the pickle asks for"
EVENT: dict[str, object] = {"action": "alloc", "addr": 4096, "size": 512}
KEYS = b"X\x08\x00\x00\x00segments"


class Harm:
    """Writes a file where it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.target,)


TOUCHING = (
    b"cos\nsystem\n(S'touch %s'\ntR.",
    b"(cos\nsystem\nS'touch %s'\no.",
    b"(S'touch %s'\nios\nsystem\n.",
    b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x40touch %s\x85R.",
    b"\x80\x02cos\nsystem\nU\x40touch %s\x85\x81.",
    b"\x80\x04\x8c\x02os\x8c\x06system\x93)}\x92.",
    b"cbuiltins\neval\n.",
    b"ccopyreg\n_reconstructor\n.",
)


@pytest.mark.parametrize("code", [*PROTOCOLS, *TOUCHING])
def test_code_is_refused_and_never_run(code: int | bytes, tmp_path: Path) -> None:
    """Whatever opcode names it."""
    target = tmp_path / "harmed"
    if isinstance(code, int):
        whole = {**snapshot([Training().run()]), "allocator_settings": Harm(target)}
        code = pickle.dumps(whole, code)
    data = code.replace(b"%s", str(target).encode())
    message = refused(tmp_path, data, rf"{REFUSED} code: [\w.]+\.\w+")
    assert "nothing in it was run" in message
    assert not target.exists()


class ByName(pickle.Pickler):
    """A pickler that leaves some objects outside."""

    def persistent_id(self, item: object) -> str | None:
        return "away" if item == "leave me" else None


def refused(tmp_path: Path, data: bytes, match: str) -> str:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(data)
    with pytest.raises(ReportError, match=match) as caught:
        read_snapshot(path)
    return str(caught.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_of_a_snapshot_is_read(protocol: int, tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "a.pickle", [Training().run()], protocol)
    frames = read_snapshot(path)
    assert frames["allocator_events"].rows == len(Training().run().events)
    assert is_snapshot_file(path)
    assert isinstance(nsightpy.open_report(path), MemorySnapshot)
    out = io.BytesIO()
    ByName(out, protocol).dump({"segments": [], "device_traces": "leave me"})
    refused(tmp_path, out.getvalue(), f"{REFUSED} an object outside the file")


@pytest.mark.parametrize("opcode", [b"\x82\x07", b"\x83\x07\x00", b"\x84\x07\x00\x00\x00"])
def test_extensions_are_refused(opcode: bytes, tmp_path: Path) -> None:
    """A registry of this process is none of the child's."""
    copyreg.add_extension("os", "system", 7)
    try:
        refused(tmp_path, b"\x80\x02" + opcode + b".", "damaged pickle.*unregistered extension")
    finally:
        copyreg.remove_extension("os", "system", 7)


@pytest.mark.parametrize(
    ("opcode", "index"), [(b"r", struct.pack("<I", 2**32 - 1)), (b"p", b"99999999999\n")]
)
def test_a_huge_memo_index_asks_for_no_memory(opcode: bytes, index: bytes, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    refused(tmp_path, b"\x80\x02}" + opcode + index + b".", "within 60 s.*and 256 MB")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(before, 400_000)


@pytest.mark.parametrize(
    "body",
    [
        # huge lengths
        b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}.",
        *(start + struct.pack("<Q", 2**40) + b"a." for start in (b"\x80\x04\x8e", b"\x80\x04\x8d")),
        b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"a.",
        b"\x80\x03B" + struct.pack("<I", 2**32 - 1) + b"a.",
        *(b"\x80\x02\x8b" + struct.pack("<i", size) + b"a." for size in (2**31 - 1, -5)),
        b"T" + struct.pack("<i", -5) + b"a.",
        # deep nesting
        b"(" * 200_000 + b"l" * 200_000 + b".",
        b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".",
        b"\x80\x02)" + b"\x85" * 3_000_000 + b".",
        # hashing walks down: the child ends, and says what it did
        b"\x80\x02})" + b"\x85" * 3_000_000 + b"Ns.",
        b"\x80\x02}" + KEYS + b"]" * 100_000 + b"a" * 99_999 + b"s.",
        # an endless list
        b"\x80\x02]" + b"Na" * 2_000_000,
    ],
)
def test_huge_lengths_deep_nesting_and_endless_lists_are_refused(
    body: bytes, tmp_path: Path
) -> None:
    refused(tmp_path, body, "is no memory snapshot|is refused|damaged")


def test_lists_within_themselves_end_and_shared_ones_do_not_multiply(tmp_path: Path) -> None:
    """segments = [{"blocks": [block, the same list again]}]; and a list of itself."""
    endless: list[Any] = []
    endless.append(endless)
    event = {"action": "alloc", "addr": 1, "size": 2, "stream": 0, "frames": []}
    segment = {"device": 0, "blocks": [{"size": 1, "state": "inactive"}] * 2_000}
    for whole, said in (
        ({"segments": endless}, "TypeError"),
        ({"segments": [], "device_traces": endless}, "TypeError"),
        ({"segments": [], "device_traces": [[event] * 2_000] * 2_000}, "repeats its rows without"),
        ({"segments": [segment] * 2_000}, "repeats its rows"),
    ):
        refused(tmp_path, pickle.dumps(whole), said)


def test_blocks_that_share_a_long_stack_are_read(tmp_path: Path) -> None:
    stack = [{"name": "f", "filename": "a.py", "line": line} for line in range(500)]
    block = {"size": 512, "state": "active_allocated", "frames": stack}
    blocks = [dict(block) for _ in range(3_000)]
    whole = {"segments": [{"device": 0, "total_size": 3_000 * 512, "blocks": blocks}]}
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps(whole))
    frames = read_snapshot(path)
    assert (frames["memory_blocks"].rows, frames["stack_frames"].rows) == (3_000, 500)


def test_a_pickle_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    """The decoder itself in this process: what it says does not need a child."""
    path = write_snapshot(tmp_path / "a.pickle", [Training(iterations=1).run()])
    whole = path.read_bytes()
    for end in (*range(40), *range(40, len(whole), 61), len(whole) - 1):
        path.write_bytes(whole[:end])
        code, problem = snapshot_decoder.decode(str(path), bounded=True)
        assert code == snapshot_decoder.DAMAGED, (end, problem)
    refused(tmp_path, whole[: len(whole) // 2], "damaged pickle.*\n.*was it cut off")


TRACE_FAULTS: list[tuple[object, str]] = [
    *((traces, "no memory snapshot") for traces in ({"a": 1}, [[1]])),
    ([[EVENT | {"action": 4}]], "AttributeError"),
    *(([[EVENT | odd]], "TypeError") for odd in ({"action": []}, {"addr": "x"}, {"time_us": 1.5})),
    ([[EVENT | {"addr": 2**70}]], "OverflowError"),
    ([[EVENT | {"frames": 3}]], "TypeError"),
    *(([[EVENT | {"size": size}]], "impossible sizes") for size in (-1, 2**60)),
    ([[EVENT | {"time_us": 2**60}]], "impossible times"),
    *(([[dict.fromkeys(EVENT.keys() - {key}, 0)]], "is no memory snapshot") for key in EVENT),
]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (["no", "segments"], "TypeError"),
        ({"a": 1}, "KeyError"),
        ({"segments": 5}, "TypeError"),
        ({"segments": [5]}, "TypeError"),
        ({"segments": [{"blocks": 7}]}, "TypeError"),
        ({"segments": [], "when": datetime.date(2026, 1, 1)}, REFUSED),
        *(({"segments": [], "device_traces": traces}, said) for traces, said in TRACE_FAULTS),
    ],
)
def test_what_is_no_snapshot_is_named(content: object, said: str, tmp_path: Path) -> None:
    refused(tmp_path, pickle.dumps(content), said)


def test_other_files_are_not_taken_for_snapshots(tmp_path: Path) -> None:
    for name, data in {"a.bin": b"\x80\x04K\x01.", "b.json": b"{}", "c": b""}.items():
        (tmp_path / name).write_bytes(data)
        assert not is_snapshot_file(tmp_path / name)
    assert not is_snapshot_file(tmp_path / "missing.pickle")
    for data in (b"", b"SQLite format 3\x00"):
        refused(tmp_path, data, "damaged pickle")


@pytest.mark.slow
def test_processor_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of one hash make a dictionary quadratic: the child is ended, not waited for."""
    monkeypatch.setattr(snapshot_reader, "BASE_SECONDS", 1)
    body = b"".join(
        pickle.dumps(number * (2**61 - 1), 2)[2:-1] + b"N" for number in range(1, 60_000)
    )
    refused(tmp_path, b"\x80\x02}(" + body + b"u.", "was not decoded within 1 s of processor time")


def test_what_cannot_be_read_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReportError, match="is a pipe, a device"):
        read_snapshot(Path("/dev/zero"))
    with pytest.raises(ReportError, match="no such file"):
        read_snapshot(tmp_path / "missing.pickle")
    path = write_snapshot(tmp_path / "a.pickle", [Training().run()])
    monkeypatch.setattr(snapshot_reader, "available_memory", lambda: 100_000_000)
    with pytest.raises(ReportError, match=r"may take 256 MB of memory, and 100 MB are free"):
        read_snapshot(path)
