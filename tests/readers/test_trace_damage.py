"""PyTorch traces of every age, in every state: exact times, and one clear word about damage."""

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.errors import ReportError
from nsightpy.readers.torch.columns import whole
from nsightpy.reports.opening import is_torch_trace
from nsightpy.reports.profiles import TorchTrace
from tests.support.reports import ROOT, refused, rows_of

BASE = 1_711_929_600_000_000_000
# 80 days after the base: as far as a base of three months can be, where float64 times are coarse
LATE_US = 80 * 86_400 * 1_000_000
BASED = f', "baseTimeNanoseconds": {BASE}'


def event(category: str, name: str, pid: int, start: str, duration: str, **args: Any) -> str:
    """The text of an event, its times as they are written."""
    return (
        f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {pid or 7}, '
        f'"ts": {start}, "dur": {duration}, "args": {json.dumps(args)}}}'
    )


def kernel(start: str, duration: str, number: int = 1, **more: Any) -> str:
    args = {"device": 0, "stream": 7, "correlation": number, "grid": [1, 2, 3], "block": [32, 1, 1]}
    return event("kernel", f"kernel_{number}", 0, start, duration, **args | more)


def call(start: str, duration: str, number: int = 1) -> str:
    return event("cuda_runtime", "cudaLaunchKernel", 41, start, duration, correlation=number)


def trace_of(*events: str, before: str = '"schemaVersion": 1,', after: str = "") -> str:
    return f'{{{before} "traceEvents": [\n{", ".join(events)}\n]{after}}}'


def steps(count: int) -> list[str]:
    pairs = (
        (call(f"{100 * n}.250", "5.125", n), kernel(f"{100 * n}.500", "9", n))
        for n in range(1, count + 1)
    )
    return [text for pair in pairs for text in pair]


def written(folder: Path, text: str | bytes, name: str = "trace.json") -> Path:
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def opened(path: Path) -> TorchTrace:
    report = nsightpy.open_report(path, use_cache=False)
    assert isinstance(report, TorchTrace)
    return report


def notes(report: TorchTrace) -> str:
    return " ".join(map(str, report.notes))


# Times and ids


@pytest.mark.parametrize(
    ("start", "header", "utc_ns"),
    [
        ("1711964646123456", "", 1_711_964_646_123_456_000),
        ("1711964646123456.789", "", 1_711_964_646_123_456_789),
        ("1711964646123456.7", "", 1_711_964_646_123_456_700),
        ("35046123456.789", BASED, BASE + 35_046_123_456_789),
        (f"{LATE_US}.001", BASED, BASE + 1000 * LATE_US + 1),
        (f"{LATE_US}.999", BASED, BASE + 1000 * LATE_US + 999),
    ],
)
def test_times_are_exact_in_every_age(tmp_path: Path, start: str, header: str, utc_ns: int) -> None:
    """Also beside an event without a time."""
    untimed = call("0", "1").replace('"ts": 0, ', "")
    text = trace_of(untimed, call(start, "7.001"), after=header)
    report = opened(written(tmp_path, text))
    assert report.session.utc_ns == utc_ns
    calls = report.frame("api_calls")
    assert (calls.ints("start_ns").tolist(), calls.ints("end_ns").tolist()) == ([0], [7001])


@pytest.mark.parametrize("first", [1_711_964_646_000_000, LATE_US, 4_398_046_511_104 - 500])
def test_every_nanosecond_survives(tmp_path: Path, first: int) -> None:
    ns = range(0, 1_000_000, 997)
    calls = (call(f"{first + n // 1000}.{n % 1000:03}", "1", n + 1) for n in ns)
    path = written(tmp_path, trace_of(*calls, after="" if first > 1e15 else BASED))
    assert opened(path).frame("api_calls").ints("start_ns").tolist() == list(ns)


@pytest.mark.parametrize(
    ("start", "duration"),
    [
        *(("9", duration) for duration in ("-5", "null", '"5x"', "1e30", "{}", str(2**62))),
        *((start, "2") for start in (str(-(2**63)), "9" * 16, '"never"')),
    ],
)
def test_events_without_a_time_that_can_be_are_left_out(
    tmp_path: Path, start: str, duration: str
) -> None:
    for other in ("5", "1711964646123456.789"):
        report = opened(written(tmp_path, trace_of(kernel(other, "2"), kernel(start, duration))))
        assert report.frame("kernels").ints("end_ns").tolist() == [2_000]
        assert "1 events without a time" in notes(report) or "1 damaged events" in notes(report)


@pytest.mark.parametrize("value", [None, -5, "abc", 1.5, True, 10**30, [2]])
@pytest.mark.parametrize(
    ("argument", "column", "instead"),
    [("correlation", "correlation_id", 0), ("stream", "stream", 7)],
)
def test_ids_that_are_none_are_said(
    tmp_path: Path, argument: str, column: str, instead: int, value: object
) -> None:
    text = trace_of(*steps(2), kernel("900", "1", **{argument: value}))
    report = opened(written(tmp_path, text))
    assert notes(report).startswith("values that are no number count as not recorded")
    assert f"({argument}: 1)" in notes(report)
    assert report.frame("kernels").ints(column)[-1] == instead


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((7.0, 7), ("stream 7", 7), (2**64 - 1, -1), (2**64, -5), (-(2**63) - 1, -5)),
        *((0.5, -5), (float("inf"), -5), ("x", -5), (None, -5)),
    ],
)
def test_what_is_no_whole_number_is_missing(value: object, number: int) -> None:
    assert whole(value, -5) == number


def test_what_is_not_written_is_not_known(tmp_path: Path) -> None:
    text = trace_of(call("100", "5"), kernel("110", "9"), kernel("120", "9", context=3))
    text = text.replace('"grid": [1, 2, 3]', '"grid": []', 1).replace('"kernel_1"', "null", 1)
    path = written(tmp_path, text)
    assert [row["Ctx"] for row in rows_of("stats", "-r", "cuda_gpu_trace", path)] == [None, 3]
    shapes = {(row["Name"], row["grid"]) for row in rows_of("kernels", "--by", "grid", path)}
    assert shapes == {("[no name]", None), ("kernel_1", "1x2x3")}


@pytest.mark.parametrize(("pid", "device"), [(3, 3), (41_234, -1)])
def test_a_device_that_a_trace_does_not_name(tmp_path: Path, pid: int, device: int) -> None:
    event = kernel("5", "2").replace('"device": 0, ', "").replace('"pid": 0', f'"pid": {pid}')
    report = opened(written(tmp_path, trace_of(event)))
    assert report.frame("kernels").ints("device").tolist() == [device]


def test_threads_that_agree_in_24_bits_keep_apart(tmp_path: Path) -> None:
    outer, other = (
        event("cpu_op", "operator", 41, *times).replace('"tid": 41', f'"tid": {tid}')
        for tid, times in ((7 + 2**25, ("0", "10")), (7 + 2**24, ("2", "5")))
    )
    operators = opened(written(tmp_path, trace_of(outer, other))).frame("operators")
    assert len(set(operators.ints("tid").tolist())) == 2
    assert operators.ints("depth").tolist() == [0, 0]


def test_merged_traces_are_said_to_be_ambiguous(tmp_path: Path) -> None:
    """Two ranks in one file: correlation ids come twice."""
    text = ", ".join(steps(2))
    ranks = (text.replace('"pid": 41', f'"pid": {pid}') for pid in (41, 42))
    report = opened(written(tmp_path, trace_of(*ranks)))
    assert "share correlation ids" in notes(report)


@pytest.mark.parametrize("api", ["cuda", "hip", "xpu", "mtia", "privateuse1"])
def test_accelerators_of_all_makers(tmp_path: Path, api: str) -> None:
    calls = call("5", "1").replace("cuda_runtime", f"{api}_runtime")
    assert opened(written(tmp_path, trace_of(calls, kernel("9", "1")))).calls.recorded


# Layouts

AFTER = (
    f'{BASED}, "deviceProperties": [{{"id": 0, "name": "A GPU"}}], "distributedInfo": '
    '{"backend": "nccl", "rank": "3", "ranks": "[0, 1]"}, "distributedInfo": {"world_size": 4}'
)
LAID_OUT: dict[str, Callable[[str], str | bytes]] = {
    "as it is": lambda text: text,
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "comma after the last event": lambda text: text.replace("\n],", ",\n],"),
    "indented": lambda text: json.dumps(json.loads(text), indent=2),
    "windows lines": lambda text: json.dumps(json.loads(text), indent=1).replace("\n", "\r\n"),
    "empty events": lambda text: text.replace("[\n", "[\n{}, {},\n", 1),
    "another list": lambda text: text.replace("{", '{"more": {"traceEvents": []}, ', 1),
    "other keys first": lambda text: re.sub(r'("ph": "X", )(.*?)("tid": )', r"\2\1\3", text),
    "gzip in parts": lambda text: b"".join(
        gzip.compress(part.encode()) for part in (text[:99], text[99:])
    ),
}


@pytest.mark.parametrize("how", LAID_OUT)
def test_a_layout_of_its_own_changes_nothing(tmp_path: Path, how: str) -> None:
    operator = json.loads(call("90", "50")) | {"cat": "cpu_op", "args": {"Input Dims": [[2, 3]]}}
    text = LAID_OUT[how](trace_of(*steps(3), json.dumps(operator), after=AFTER))
    report = opened(written(tmp_path, text))
    assert report.frame("kernels").rows == report.frame("api_calls").rows == 3
    assert report.frame("operators").labels("shapes").values == ("[[2, 3]]",)
    assert report.frame("devices").labels("name").values == ("A GPU",)
    assert report.session.utc_ns == BASE + 90_000
    if how not in ("indented", "windows lines"):  # json takes the last of two keys
        assert report.rank_of(41) == (3, "distributedInfo")
    assert report.notes == []


def test_a_list_of_events_has_no_header(tmp_path: Path) -> None:
    report = opened(written(tmp_path, f"\ufeff[{','.join(steps(3))},]"))
    assert (report.frame("kernels").rows, report.notes) == (3, [])


# Damage


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_of_a_cut_off_file_everything_before_the_cut_is_read(
    tmp_path: Path, name: str, share: float
) -> None:
    path = written(tmp_path, trace_of(*steps(400), after=AFTER), name)
    os.truncate(path, int(path.stat().st_size * share))
    report = opened(path)
    kept = report.frame("kernels").rows
    assert 0 < kept < 400
    assert report.frame("kernels").ints("correlation_id").tolist() == list(range(1, kept + 1))
    assert "cut off" in notes(report)
    assert report.session.utc_ns is None


DAMAGES: dict[str, tuple[Callable[[str], str | bytes], list[int], str]] = {
    "unescaped quotes": (lambda t: t.replace("kernel_2", 'say "hi" there'), [1, 2, 3], "mended"),
    "nan": (lambda t: t.replace('"stream": 7', '"stream": 7, "x": nan'), [1, 2, 3], "mended"),
    "control": (lambda t: t.replace("kernel_2", "kernel\x01_2"), [1, 2, 3], "mended"),
    "bytes": (lambda t: t.encode().replace(b"kernel_2", b"kernel_\xff"), [1, 2, 3], "mended"),
    "no JSON": (lambda t: t.replace('"kernel_2"', "kernel_2 {{"), [1, 3], "1 damaged events"),
    "a list": (lambda t: t.replace('"kernel_2"', '["kernel_2"]'), [1, 3], "1 damaged events"),
    "two parts": (
        lambda t: t.replace("[", "[" + call("5", "1").replace('"X"', '"B"') + ",", 1),
        [1, 2, 3],
        "1 events without a time, or with begin and end apart",
    ),
    "no arguments": (lambda t: t.replace('"args": {"dev', '"args": 1, "a": {"dev'), [0] * 3, ""),
    "a text for a time": (lambda t: t.replace('"dur": 9', '"dur": "9"'), [1, 2, 3], ""),
}  # fmt: skip


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_events_are_mended_or_left_out_and_said(tmp_path: Path, how: str) -> None:
    damage, kept, said = DAMAGES[how]
    report = opened(written(tmp_path, damage(trace_of(*steps(3)))))
    assert report.frame("kernels").ints("correlation_id").tolist() == kept
    assert report.frame("kernels").ints("end_ns").tolist()[0] == 9250
    assert said in notes(report)


HOPELESS = {
    "empty object": "{}",
    "no events": trace_of(),
    "cut before the events": '{"schemaVersion": 1, "traceEvents": [ {"ph": "X", "ca',
    "nested": '{"traceEvents": ' + "[" * 200_000,
    "nested event": '{"traceEvents": [{"ph": ' + '{"a":' * 100_000 + "}]}",
    "other chrome trace": '{"traceEvents": [{"ph": "X", "cat": "v8", "name": "a", "ts": 1}]}',
    "nonsense": '{"traceEvents": [{"ph" "X" ]}',
    "times that are none": trace_of(kernel('"never"', "1"), kernel("1e300", "1")),
    "damaged gzip": gzip.compress(b"x" * 500)[:-30] + b"no sum of what stands before",
}


@pytest.mark.parametrize("how", HOPELESS)
def test_what_is_no_trace_is_one_error(tmp_path: Path, how: str) -> None:
    path = written(tmp_path, HOPELESS[how])
    with pytest.raises(ReportError) as caught:
        TorchTrace(path, use_cache=False).frame("kernels")
    assert caught.value.path == str(path)
    assert caught.value.advice


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
