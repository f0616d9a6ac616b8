"""Baselines and bandwidths of nccl-tests: what is written is read, nothing else is."""

import json
from pathlib import Path
from typing import Any

import pytest

from nsightpy.errors import ReportError
from nsightpy.output.baseline import baseline_bytes
from nsightpy.readers.references import read_baseline, read_link_rates
from nsightpy.results.run_summary import (
    BASELINE_SCHEMA,
    PARTS,
    RunSummary,
    UnitSummary,
    WorkSummary,
)
from tests.support.nccl_tests import nccl_tests

WORKS = (
    WorkSummary("kernel", 'a "kernel"<\\n>', 2.5, 30, (29, 31)),
    WorkSummary("range", "forward", 1.0, 50),
    WorkSummary("kernel", "measured", 1.0, 7, figures={"sol_compute_pct": 41.5}),
)
NONE = [0] * (len(PARTS) - 2)
STEP = UnitSummary(100, (60, *NONE, 40), 20, ((101, 61, *NONE, 40),), WORKS, (0, 2, 0))


def run(name: str) -> RunSummary:
    about = {"GPU": "NVIDIA H100", "ranks": "2"}
    return RunSummary("nsys", name, {"step": STEP, "window": STEP}, about, ("left out: /home/ann",))


RUNS = tuple(run(f"/home/ann/node17/run{place}.nsys-rep") for place in range(3))
WHOLE = json.loads(baseline_bytes(RUNS))


def test_what_is_written_is_read_and_names_nobody(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    text = baseline_bytes(RUNS)
    path.write_bytes(text)
    found = read_baseline(path)
    assert [one.name for one in found] == ["run 1", "run 2", "run 3"]
    assert [(one.units, one.circumstances) for one in found] == [
        (one.units, one.circumstances) for one in RUNS
    ]
    assert baseline_bytes(found) == text
    assert not any(word in text for word in (b"ann", b"node17", b"home", b"nsys-rep"))
    # changes can be reviewed
    assert max(len(line) for line in text.splitlines()) < 500
    assert sum(b'"name": "forward"' in line for line in text.splitlines()) == 6


def test_names_that_are_no_text_are_written(tmp_path: Path) -> None:
    odd = UnitSummary(100, STEP.parts, 1, works=(WorkSummary("kernel", "\ud800\x00", 1.0, 5),))
    path = tmp_path / "baseline.json"
    path.write_bytes(baseline_bytes([RunSummary("nsys", "", {"step": odd})]))
    assert read_baseline(path)[0].units["step"].works[0].name == "\\ud800\x00"


def changed(*path: Any, value: Any) -> bytes:
    """The document with one value in place of another."""
    document = json.loads(json.dumps(WHOLE))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(document).encode()


def step(*path: Any, value: Any) -> bytes:
    """The same for a value of a step."""
    return changed("runs", 0, "units", "step", *path, value=value)


WRITTEN = baseline_bytes(RUNS)
COUNT = b'"count": 2.5'
BAD: dict[str, tuple[bytes, str]] = {
    "another version": (
        changed("schema", value="nsightpy.baseline/2"),
        "of this version",
    ),
    "other parts": (changed("parts", value=["compute"]), "of this version"),
    "another document": (changed("schema", value="nsightpy.compare/1"), "of this version"),
    "no JSON": (b"\x00\xff", "no baseline, or a damaged one"),
    "cut": (WRITTEN[:-40], "damaged"),
    "no runs": (changed("runs", value=[]), "damaged"),
    "text for a time": (step("duration_ns", value="1"), "Expected `int`"),
    "a part too much": (step("duration_ns", value=101), "contradict"),
    "before time": (step("samples", value=[[-1] * 9]), "Expected `int` >= 0"),
    "samples of other parts": (step("samples", value=[[1]]), "contradict"),
    "an endless time": (step("parts", value=[10**300]), "Expected `int` <="),
    "a time beyond all": (step("works", 0, "total_ns", value=2**61), "Expected `int` <="),
    "less than none": (step("works", 0, "count", value=-1), "Expected `float` >= 0"),
    "an endless number": (WRITTEN.replace(COUNT, b'"count": 1e999'), "out of range"),
    "not a number": (WRITTEN.replace(COUNT, b'"count": NaN'), "damaged"),
    "nested without end": (WRITTEN.replace(b"[\n", b"[" * 200_000, 1), "damaged"),
    "nested unread": (b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "recursion"),
    "another section": (step("works", 0, "section", value="<script>"), "contradict"),
    "another tool": (changed("runs", 0, "kind", value="<script>"), "contradict"),
    "another unit": (changed("runs", 0, "units", value={"epoch": WHOLE}), "damaged"),
    "no units": (changed("runs", 0, "units", value={}), "contradict"),
    "launches of nothing": (step("order", value=[3]), "contradict"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_baseline_is_one_message(what: str, tmp_path: Path) -> None:
    data, said = BAD[what]
    path = tmp_path / "baseline.json"
    path.write_bytes(data)
    with pytest.raises(ReportError) as error:
        read_baseline(path)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "--save-baseline" in str(error.value)
    assert len(str(error.value)) < 500 + len(str(path))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.json", "no such file"), (tmp_path, "irectory")):
        with pytest.raises(ReportError, match=said):
            read_baseline(path)
    assert WHOLE["schema"] == BASELINE_SCHEMA


# nccl-tests

LARGE = 16 << 20
# As versions of 2021 print it: other columns, and one process without MPI.
OLD = """\
#   Rank  0 Pid   1320 on  node-a device  0 [0x00] Tesla V100-SXM2-16GB
#   Rank  1 Pid   1320 on  node-a device  1 [0x00] Tesla V100-SXM2-16GB
#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error
    33554432       4194304     float    817.8   20.51   20.51  0e+00    785.1   21.37   21.37  0e+00
"""


def rates_of(folder: Path, *texts: str) -> dict[bool, float]:
    paths = [folder / f"{number}.txt" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return read_link_rates(paths, LARGE)


@pytest.mark.parametrize(
    ("texts", "rates"),
    [
        ([nccl_tests()], {False: 21.4}),
        ([nccl_tests("ab")], {True: 21.4}),
        ([nccl_tests(), nccl_tests("ab", "4.5")], {False: 21.4, True: 4.5}),
        ([nccl_tests(), nccl_tests(busbw="23.0")], {False: 23.0}),
        ([OLD], {False: 21.37}),
        (["".join(f"[1,0]<stdout>:{line}\n" for line in OLD.splitlines())], {False: 21.37}),
        ([], {}),
    ],
)
def test_the_fastest_large_operation(
    texts: list[str], rates: dict[bool, float], tmp_path: Path
) -> None:
    assert rates_of(tmp_path, *texts) == rates


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "is no output of nccl-tests"),
        ("link, 400, GB/s\n", "is no output of nccl-tests"),
        ("\0\xff" * 9, "is no output of nccl-tests"),
        (nccl_tests().replace("67108864", "1048576"), "no bandwidth of an operation of 16 MiB"),
        (nccl_tests(busbw="0.00").replace(" 1.00 ", " 0.00 "), "no bandwidth of an operation"),
        (OLD.replace("817.8", "817.8 1"), "no bandwidth of an operation"),
    ],
)
def test_other_files_are_refused(text: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=wrong) as raised:
        rates_of(tmp_path, text)
    assert "all_reduce_perf" in str(raised.value)
    with pytest.raises(ReportError, match="no such file"):
        read_link_rates([tmp_path / "none.txt"], LARGE)
