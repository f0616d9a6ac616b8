"""PyTorch traces of every age, in every state: exact times, and one clear word about damage."""

from __future__ import annotations

import gzip
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.errors import ReportError
from nsightpy.readers.torch.pieces import is_torch_trace
from nsightpy.reports.torch import TorchTrace
from tests.support.reports import ROOT, ask, refused

BASE = 1_711_929_600_000_000_000
# 80 days after the base: as far as a base of three months can be, where float64 times are coarse
LATE_US = 80 * 86_400 * 1_000_000


def kernel(start: str, duration: str, number: int = 1, **more: Any) -> str:
    args = {"device": 0, "stream": 7, "correlation": number, "grid": [1, 2, 3], "block": [32, 1, 1]}
    rest = json.dumps(args | more)
    return (
        f'{{"ph": "X", "cat": "kernel", "name": "kernel_{number}", "pid": 0, "tid": 7, '
        f'"ts": {start}, "dur": {duration}, "args": {rest}}}'
    )


def call(start: str, duration: str, number: int = 1) -> str:
    return (
        '{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 41, "tid": 41, '
        f'"ts": {start}, "dur": {duration}, "args": {{"correlation": {number}}}}}'
    )


def trace_of(*events: str, before: str = '"schemaVersion": 1,', after: str = "") -> str:
    return f'{{{before} "traceEvents": [\n{", ".join(events)}\n]{after}}}'


def steps(count: int) -> list[str]:
    return [
        one
        for number in range(1, count + 1)
        for one in (
            call(f"{100 * number}.250", "5.125", number),
            kernel(f"{100 * number}.500", "9", number),
        )
    ]


def written(folder: Path, text: str | bytes, name: str = "trace.json") -> Path:
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def opened(path: Path) -> TorchTrace:
    report = nsightpy.open_report(path, use_cache=False)
    assert isinstance(report, TorchTrace)
    return report


def test_a_context_that_is_not_written_is_not_known(tmp_path: Path) -> None:
    text = trace_of(call("100", "5"), kernel("110", "9"), kernel("120", "9", context=3))
    rows = ask("stats", "-r", "cuda_gpu_trace", written(tmp_path, text), "--format", "json").json[
        "rows"
    ]
    assert [row["Ctx"] for row in rows] == [None, 3]


@pytest.mark.parametrize("value", [None, -5, "abc", 1.5, True, 10**30])
@pytest.mark.parametrize(
    ("argument", "column", "instead"),
    [("correlation", "correlation_id", 0), ("stream", "stream", 7)],
)
def test_ids_that_are_none_are_said(
    tmp_path: Path, argument: str, column: str, instead: int, value: object
) -> None:
    text = trace_of(*steps(2), kernel("900", "1", **{argument: value}))
    report = opened(written(tmp_path, text))
    assert str(report.notes[0]).startswith("values that are no number count as not recorded")
    assert f"({argument}: 1)" in str(report.notes[0])
    assert report.frame("kernels").ints(column)[-1] == instead


@pytest.mark.parametrize(
    ("start", "header", "utc_ns"),
    [
        ("1711964646123456", "", 1_711_964_646_123_456_000),
        ("1711964646123456.789", "", 1_711_964_646_123_456_789),
        ("1711964646123456.7", "", 1_711_964_646_123_456_700),
        ("35046123456.789", f', "baseTimeNanoseconds": {BASE}', BASE + 35_046_123_456_789),
        (f"{LATE_US}.001", f', "baseTimeNanoseconds": {BASE}', BASE + 1000 * LATE_US + 1),
        (f"{LATE_US}.999", f', "baseTimeNanoseconds": {BASE}', BASE + 1000 * LATE_US + 999),
    ],
)
def test_times_are_exact_in_every_age(tmp_path: Path, start: str, header: str, utc_ns: int) -> None:
    report = opened(written(tmp_path, trace_of(call(start, "7.001"), after=header)))
    assert report.session.utc_ns == utc_ns
    calls = report.frame("api_calls")
    assert calls.ints("start_ns").tolist() == [0]
    assert calls.ints("end_ns").tolist() == [7001]


@pytest.mark.parametrize("first", [1_711_964_646_000_000, LATE_US, 4_398_046_511_104 - 500])
def test_every_nanosecond_survives(tmp_path: Path, first: int) -> None:
    base = "" if first > 1e15 else f', "baseTimeNanoseconds": {BASE}'
    texts = [f"{first + ns // 1000}.{ns % 1000:03}" for ns in range(0, 1_000_000, 997)]
    text = trace_of(*(call(one, "1", n + 1) for n, one in enumerate(texts)), after=base)
    found = opened(written(tmp_path, text)).frame("api_calls").ints("start_ns")
    assert found.tolist() == list(range(0, 1_000_000, 997))


def test_one_event_without_a_time_costs_the_others_no_digits(tmp_path: Path) -> None:
    untimed = call("0", "1").replace('"ts": 0, ', "")
    times = ("1711964646123456.789", "1711964646123457.001")
    report = opened(written(tmp_path, trace_of(untimed, *(kernel(at, "2") for at in times))))
    assert report.session.utc_ns == 1_711_964_646_123_456_789
    assert report.frame("kernels").ints("start_ns").tolist() == [0, 212]


def test_threads_that_agree_in_24_bits_keep_apart(tmp_path: Path) -> None:
    outer, other = (
        f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 41, "tid": {tid}, '
        f'"ts": {start}, "dur": {duration}}}'
        for name, tid, start, duration in (("outer", 7, 0, 10), ("other", 7 + 2**24, 2, 5))
    )
    operators = opened(written(tmp_path, trace_of(outer, other))).frame("operators")
    assert len(set(operators.ints("tid").tolist())) == 2
    assert operators.ints("depth").tolist() == [0, 0]


def test_header_may_stand_on_either_side_and_repeat(tmp_path: Path) -> None:
    after = (
        ', "distributedInfo": {"backend": "nccl", "rank": "3", "ranks": "[0, 1, 2, 3]"}, '
        '"distributedInfo": {"world_size": 4}, "deviceProperties": [{"id": 0, "name": "A GPU"}]'
    )
    report = opened(written(tmp_path, trace_of(*steps(2), after=after)))
    assert report.rank_of(41) == (3, "distributedInfo")
    assert report.frame("devices").labels("name").values == ("A GPU",)
    assert report.notes == []


def test_events_may_begin_with_any_key(tmp_path: Path) -> None:
    events = [json.loads(one) for one in steps(3)]
    swapped = [
        json.dumps(dict(sorted(one.items(), reverse=place % 2 == 0)))
        for place, one in enumerate(events)
    ]
    report = opened(written(tmp_path, trace_of(*swapped)))
    assert (report.frame("kernels").rows, report.frame("api_calls").rows) == (3, 3)
    alone = opened(written(tmp_path, f"[{','.join(steps(3))}]"))
    assert alone.frame("kernels").rows == 3


HEADER = f', "baseTimeNanoseconds": {BASE}, "deviceProperties": [{{"id": 0, "name": "A GPU"}}]'
LAID_OUT: dict[str, Callable[[str], str | bytes]] = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "comma after the last event": lambda text: text.replace("\n],", ",\n],"),
    "indented": lambda text: json.dumps(json.loads(text), indent=2),
    "windows lines": lambda text: json.dumps(json.loads(text), indent=1).replace("\n", "\r\n"),
    "empty events": lambda text: text.replace("[\n", "[\n{}, {},\n", 1),
    "another list of that name": lambda text: text.replace(
        "{", '{"more": {"traceEvents": []}, ', 1
    ),
    "gzip in parts": lambda text: b"".join(
        gzip.compress(p.encode()) for p in (text[:99], text[99:])
    ),
}


@pytest.mark.parametrize("how", LAID_OUT)
def test_a_layout_of_its_own_changes_nothing(tmp_path: Path, how: str) -> None:
    operator = json.loads(call("90", "50")) | {"cat": "cpu_op", "args": {"Input Dims": [[2, 3]]}}
    made = LAID_OUT[how](trace_of(*steps(3), json.dumps(operator), after=HEADER))
    path = tmp_path / "trace.json"
    path.write_bytes(made.encode() if isinstance(made, str) else made)
    report = opened(path)
    assert report.frame("kernels").rows == 3
    assert report.frame("operators").labels("shapes").values == ("[[2, 3]]",)
    assert report.frame("devices").labels("name").values == ("A GPU",)
    assert report.session.utc_ns == BASE + 90_000
    assert report.notes == []


def test_a_list_of_events_has_no_header(tmp_path: Path) -> None:
    report = opened(written(tmp_path, f"\ufeff[{','.join(steps(3))},]"))
    assert (report.frame("kernels").rows, report.notes) == (3, [])


def test_events_in_two_parts_are_left_out_and_counted(tmp_path: Path) -> None:
    begins = call("5", "1").replace('"X"', '"B"')
    report = opened(written(tmp_path, trace_of(begins, *steps(2))))
    assert report.frame("api_calls").rows == 2
    assert "1 events whose begin and end stand apart" in str(report.notes[0])


def test_merged_traces_are_said_to_be_ambiguous(tmp_path: Path) -> None:
    """Two ranks in one file: processes are named by texts, correlation ids come twice."""
    ranks = [
        one.replace('"pid": 41', f'"pid": "[rank{n}] 41 x"') for n in (0, 1) for one in steps(2)
    ]
    report = opened(written(tmp_path, trace_of(*ranks)))
    assert len(set(report.frame("api_calls").ints("pid").tolist())) == 2
    assert "share correlation ids" in " ".join(map(str, report.notes))


@pytest.mark.parametrize("api", ["cuda", "hip", "xpu", "mtia", "privateuse1"])
def test_accelerators_of_all_makers(tmp_path: Path, api: str) -> None:
    calls = call("5", "1").replace("cuda_runtime", f"{api}_runtime")
    assert opened(written(tmp_path, trace_of(calls, kernel("9", "1")))).calls.recorded


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_of_a_cut_off_file_everything_before_the_cut_is_read(tmp_path: Path, name: str) -> None:
    text = trace_of(*steps(400)).encode()
    whole = text if name.endswith("json") else gzip.compress(text)
    for share in (0.3, 0.6, 0.9):
        path = tmp_path / name
        path.write_bytes(whole[: int(len(whole) * share)])
        report = opened(path)
        kept = report.frame("kernels").rows
        assert 0 < kept < 400
        assert report.frame("kernels").ints("correlation_id").tolist() == list(range(1, kept + 1))
        assert any("cut off" in str(note) for note in report.notes)


def test_a_lost_header_is_said(tmp_path: Path) -> None:
    text = trace_of(*steps(5), after=f', "baseTimeNanoseconds": {BASE}')
    report = opened(written(tmp_path, text[: text.rindex("]")]))
    assert report.frame("kernels").rows == 5
    assert report.session.utc_ns is None


MENDED: dict[str, Callable[[str], str | bytes]] = {
    "unescaped quotes": lambda one: one.replace("kernel_2", 'say "hi" there'),
    "nan": lambda one: one.replace('"stream": 7', '"stream": 7, "x": nan, "y": -inf'),
    "control": lambda one: one.replace("kernel_2", "kernel\x01_2"),
    "bytes": lambda one: one.encode().replace(b"kernel_2", b"kernel_\xff\xfe"),
}


@pytest.mark.parametrize("how", MENDED)
def test_what_is_no_json_is_mended(tmp_path: Path, how: str) -> None:
    made = MENDED[how](trace_of(*steps(3)))
    report = opened(written(tmp_path, made))
    assert report.frame("kernels").rows == 3
    assert any("mended" in str(note) for note in report.notes)


TYPES = {
    "list for a number": ('"correlation": 2,', '"correlation": [2, 3],'),
    "object for a stream": ('"stream": 7', '"stream": {"id": 7}'),
    "text for numbers": ('"stream": 7', '"stream": "stream 7"'),
    "beyond 64 bits": ('"stream": 7', f'"stream": {2**80}'),
    "arguments are a text": ('"args": {"device": 0', '"args": "none", "more": {"device": 0'),
    "a text for a time": ('"dur": 9', '"dur": "9"'),
}


@pytest.mark.parametrize("how", TYPES)
def test_values_of_other_types_cost_no_event(tmp_path: Path, how: str) -> None:
    report = opened(written(tmp_path, trace_of(*steps(3)).replace(*TYPES[how])))
    assert report.frame("kernels").rows == 3
    assert report.frame("kernels").ints("end_ns").tolist()[0] == 9250
    for name in ("kernels", "memory_operations", "collectives", "processes", "operators"):
        report.frame(name).to_pandas()


def test_kernels_of_traces_without_a_name_or_a_grid(tmp_path: Path) -> None:
    text = trace_of(*steps(3)).replace('"name": "kernel_2"', '"name": null')
    path = written(tmp_path, text.replace('"grid": [1, 2, 3]', '"grid": []', 1))
    found = ask("kernels", "--by", "grid", path, "--format", "json").json
    shapes = {(row["Name"], row["grid"]) for row in found["rows"]}
    assert shapes == {("kernel_1", None), ("[no name]", "1x2x3"), ("kernel_3", "1x2x3")}
    assert "1 kernels, copies and memory sets have no name." in found["notes"]


def test_an_event_that_cannot_be_read_is_left_out_and_counted(tmp_path: Path) -> None:
    text = trace_of(*steps(3)).replace('"name": "kernel_2"', '"name": kernel_2 {{')
    report = opened(written(tmp_path, text))
    assert report.frame("kernels").ints("correlation_id").tolist() == [1, 3]
    (note,) = report.notes
    assert "1 damaged events are left out" in str(note)


HOPELESS = {
    "empty object": "{}",
    "no events": trace_of(),
    "cut before the events": '{"schemaVersion": 1, "traceEvents": [ {"ph": "X", "ca',
    "nested": '{"traceEvents": ' + "[" * 200_000,
    "nested event": '{"traceEvents": [{"ph": ' + '{"a":' * 100_000 + "}]}",
    "other chrome trace": '{"traceEvents": [{"ph": "X", "cat": "v8", "name": "a", "ts": 1}]}',
    "nonsense": '{"traceEvents": [{"ph" "X" ]}',
    "times that are none": trace_of(kernel('"never"', "1"), kernel("1e300", "1")),
}


@pytest.mark.parametrize("how", HOPELESS)
def test_what_is_no_trace_is_one_error(tmp_path: Path, how: str) -> None:
    path = written(tmp_path, HOPELESS[how])
    with pytest.raises(ReportError) as caught:
        TorchTrace(path, use_cache=False).frame("kernels")
    assert caught.value.path == str(path)
    assert caught.value.advice


def test_a_damaged_gzip_is_no_crash(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(trace_of(*steps(500)).encode()))
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "trace.json.gz"
    path.write_bytes(bytes(data))
    try:
        notes = opened(path).notes
    except ReportError as error:
        notes = [error.problem]
    assert notes


def test_files_are_known_by_what_they_hold(tmp_path: Path) -> None:
    text = trace_of(*steps(1))
    for name in ("a", "b.sqlite", "c.txt", "d.json.gz"):
        assert is_torch_trace(written(tmp_path, text, name)), name
    for name, other in (("e.json", '{"schema": "nsightpy.kernels/1"}'), ("f.json", "[1, 2]")):
        assert not is_torch_trace(written(tmp_path, other, name)), name
    assert not is_torch_trace(tmp_path)
    assert not is_torch_trace(tmp_path / "missing.json")


def test_traces_and_exports_are_not_mixed(tmp_path: Path) -> None:
    written(tmp_path, trace_of(*steps(1)), "rank0.json")
    sample = ROOT / "sample_reports" / "single_process.sqlite"
    (tmp_path / "rank1.sqlite").write_bytes(sample.read_bytes())
    said = refused("kernels", tmp_path / "rank0.json", tmp_path / "rank1.sqlite")
    assert "one rank set holds reports of one tool" in said


def test_columns_are_kept_only_where_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(tmp_path / "cache"))
    info = ', "traceName": "/home/somebody/secret_job", "INFO": {"user": "somebody"}'
    path = written(tmp_path, trace_of(*steps(2000), after=info), "secret_host_41.1.pt.trace.json")
    opened(path).frame("kernels")
    assert not (tmp_path / "cache").exists()
    first = TorchTrace(path)
    whole = {name: first.frame(name).to_pandas() for name in ("kernels", "api_calls", "operators")}
    (entry,) = (tmp_path / "cache" / "exports").glob("*.columns")
    assert stat.S_IMODE(entry.stat().st_mode) == 0o700
    files = sorted(entry.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    held = b"".join(file.read_bytes() for file in files)
    assert not any(word in held for word in (b"somebody", b"secret"))
    assert "secret" not in entry.name
    monkeypatch.setattr("nsightpy.reports.torch.read_trace", None)  # nobody reads it again
    again = TorchTrace(path)
    for name, frame in whole.items():
        assert again.frame(name).to_pandas().equals(frame), name
    assert (
        again.frame("kernels", ("name", "start_ns"))
        .to_pandas()
        .equals(whole["kernels"][["name", "start_ns"]])
    )
    assert again.session == first.session
    monkeypatch.undo()
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(tmp_path / "cache"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-10])
    assert TorchTrace(path).frame("kernels").to_pandas().equals(whole["kernels"])
    path.write_text(trace_of(*steps(1999)), encoding="utf-8")
    assert TorchTrace(path).frame("kernels").rows == 1999
