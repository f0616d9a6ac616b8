"""Requests that cannot be granted: told to people and, with --format json, as data; outputs."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from simulator import Export

from nsightpy import __version__
from nsightpy.cli.main import run
from nsightpy.errors import FAULTS
from nsightpy.output.escape import printable
from nsightpy.query import command
from nsightpy.reports.profiles import NsysReport
from tests.support.full_export import changed, full
from tests.support.reports import ask, refused, state
from tests.support.samples import SINGLE


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full(tmp_path_factory.mktemp("good") / "good.sqlite").write()


def failed(*arguments: str | Path, code: int = 1) -> dict[str, Any]:
    """What a command that fails says as data, beside the same for people; stdout has no answer."""
    answer = ask(*arguments, "--format", "json", expect=code)
    *message, last = answer.stderr.splitlines()
    assert answer.stdout == b""
    starts = ("nsightpy: ", "nsightpy failed on ", "Usage: ", "interrupted")
    assert "".join(message).startswith(starts)
    document = json.loads(last)
    assert list(document) == ["schema", "tool_version", "error"]
    assert (document["schema"], document["tool_version"]) == ("nsightpy.error/1", __version__)
    error: dict[str, Any] = document["error"]
    assert list(error) == ["file", "what", "what_to_do"]
    whole = " ".join(" ".join(message).split())
    assert " ".join(error["what"].split()) in whole
    assert printable(error["file"] or "") in whole
    assert "Traceback" not in whole
    return error


def test_a_picture_is_refused_where_one_of_its_questions_is(export: Path, tmp_path: Path) -> None:
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
    view = f"ALTER TABLE {calls} RENAME TO calls", f"CREATE VIEW {calls} AS SELECT * FROM calls"
    path = changed(export, tmp_path / "view.sqlite", view)
    said = refused("breakdown", path, "--bins", "1", "-o", tmp_path / "a.svg")
    assert "has a view or a virtual table in place of the table" in said


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("frobnicate R", "there is no command 'frobnicate'"),
        ("kernals R", "Did you mean kernels?"),
        ("select R --script plain", "--script has one form"),
        ("kernels", "Missing argument 'REPORT...'"),
        ("kernels R --frobnicate", "No such option"),
        ("kernels R --by colour", "cannot split by colour; there are rank,"),
        ("kernels R --name pretty", "'pretty' is not one of"),
        ("kernels R --top -1", "must be a number from 0"),
        ("kernels R --jobs 0", "must be a number from 1"),
        ("kernels R --jobs two", "not a valid integer"),
        ("kernels R --on-error ignore", "'ignore' is not one of"),
        ("breakdown R --communication (", "no regular expression"),
        ("kernels R --from soon", "'soon' is not a time"),
        ("kernels R --from=", "'' is not a time"),
        ("kernels R --to 1e400", "'1e400' is beyond every report"),
        ("kernels R --from 5us --to 2us", "later than"),
        *(
            (f"kernels R --rank={ranks}", f"'{ranks}' names no ranks")
            for ranks in ("all", "", "-1", "3-1", "0-99999999", "9999999999999999999999")
        ),
        ("kernels R --device gpu0", "'gpu0' names no devices"),
        ("memory R --by grid", "rank, device, process, stream, memory"),
        *((f"gaps R --by {by}", "there are cause, place, range") for by in ("colour", "call,gap")),
        ("operators R --by colour", "shape"),
        ("breakdown R --rank-regex rank(", "'rank(' is no regular expression"),
        (f"breakdown {SINGLE} --rank-regex single", "'single'"),
    ],
)
def test_wrong_usage(export: Path, words: str, what: str) -> None:
    error = failed(*(str(export) if word == "R" else word for word in words.split()), code=2)
    assert what in error["what"]
    assert error["file"] is None
    if "frob" in words:
        name = "kernels " if "kernels" in words else ""
        assert error["what_to_do"] == f"nsightpy {name}--help"


def test_an_unknown_format_is_wrong_usage(export: Path) -> None:
    assert "'xml' is not one of" in refused("kernels", export, "--format", "xml", code=2)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("no.sqlite", None, "no such file"),
        ("a.sqlite", b"", "is empty"),
        ("a.sqlite", b"SQLite format 3\0" + b"\xff" * 5000, ""),
        ("a.sqlite", b"{]", ""),
        ("a\x1b[31m b\N{SNOWMAN}.sqlite", None, "matches no file"),
        ("a\nforged\u2028forged\x85forged.sqlite", b"{]", ""),
        ("a.nsys-rep", b"NVIDIA Tegra Profiler Report", ""),
    ],
    ids=["missing", "empty", "damaged", "text", "odd name", "lines", "no nsys"],
)
def test_files_that_are_no_reports(
    tmp_path: Path, name: str, content: bytes | None, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("NSIGHTPY_NSYS", str(tmp_path / "no-such-nsys"))
    error = failed("kernels", path)
    assert what in error["what"]
    assert error["file"] == str(path)
    assert error["what_to_do"] or not name.endswith("nsys-rep")
    last = ask("kernels", path, "--format=json", expect=1).stderr.splitlines()[-1]
    assert last.isascii()
    assert last.isprintable()
    for options in ((), ("--format", "csv"), ("--", "--format", "json")):
        assert "error/1" not in ask("kernels", path, *options, expect=1).stderr
        lines = ask("kernels", path, *options, expect=1).stderr.splitlines()
        assert not any(line.startswith("forged") for line in lines)


def test_what_a_capture_does_not_hold(export: Path) -> None:
    error = failed("kernels", export, "--nvtx", "epoch")
    assert error["file"] == str(export)
    assert "range" in error["what"]
    assert "step" in error["what_to_do"]
    message = refused("kernels", export, "--device", "3,7")
    assert "--device 3, 7: no GPU work on it; there are: 0. See nsightpy info." in message
    assert ask("kernels", export, "--device", "0-7").code == 0


@pytest.mark.parametrize(
    "words",
    [
        *("collectives", "gaps", "gaps --by call", "graphs", "memory", "memory-usage"),
        *("nvtx", "operators", "ranks --by kernel", "ranks --by stage", "ranks --by call"),
    ],
)
def test_nothing_to_list_is_an_answer(words: str, tmp_path: Path) -> None:
    made = Export(tmp_path / "a.sqlite")
    made.gpu()
    made.cuda_device()
    made.kernel(1_000, 1_600, "k", launch=(500, 600))
    document = ask(*words.split(), made.write(), "--format", "json").json
    assert document["rows"] == []
    wanted = ("holds no ", "recorded no ", "No pipeline: ", "needs at least two ranks")
    assert any(text in note for text in wanted for note in document["notes"])


@pytest.mark.parametrize(
    ("raised", "code", "file", "what"),
    [
        (MemoryError(), 1, None, "out of memory"),
        (OSError(28, "No space left"), 1, None, "the output cannot be written: No space left"),
        (OSError(5, "Input/output error", "/a/b"), 1, "/a/b", "Input/output error"),
        (ZeroDivisionError("by zero"), 1, "R", "(ZeroDivisionError: by zero)"),
        (KeyboardInterrupt(), 130, None, "interrupted"),
        (SystemExit(143), 143, None, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_nobody_foresaw(
    export: Path,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    code: int,
    file: str | None,
    what: str,
) -> None:
    def raises(*arguments: object, **options: object) -> None:
        raise raised

    monkeypatch.setattr(command.Request, "of", raises)
    monkeypatch.setattr("nsightpy.cli.failures.give_up", lambda *streams: None)
    monkeypatch.delenv(FAULTS)
    if code == 143:  # of a signal
        with pytest.raises(SystemExit, match="143"):
            run(["kernels", str(export)])
        return
    error = failed("kernels", export, code=code)
    assert what in error["what"]
    assert error["file"] == (str(export) if file == "R" else file)


@pytest.mark.slow
def test_a_fault_beside_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the other reports on stdout, exit code 1 all the same."""
    for name in ("a", "b"):
        full(tmp_path / f"{name}.sqlite").write()

    def broken(report: NsysReport, name: str, columns: object = None) -> object:
        if report.path.stem == "b" and name == "kernels":
            raise KeyError("shown")
        return whole(report, name, columns)  # type: ignore[arg-type]

    whole = NsysReport.frame
    monkeypatch.setattr(NsysReport, "frame", broken)
    monkeypatch.delenv(FAULTS)
    answer = ask("kernels", tmp_path, "--jobs", "1", "--format", "json", expect=1)
    what = f"nsightpy failed on {tmp_path / 'b.sqlite'} (KeyError: 'shown')"
    advice = "this is a fault of nsightpy, please report it; -v shows where"
    assert answer.json["rows"]
    assert f"left out: {what}" in answer.json["notes"]
    *message, last = answer.stderr.splitlines()
    assert message[-1] == f"{what}; {advice}"
    error = {"file": str(tmp_path / "b.sqlite"), "what": what, "what_to_do": advice}
    assert json.loads(last)["error"] == error
    page = ask("report", tmp_path, "--jobs", "1", "-o", tmp_path / "page.html", expect=1)
    assert f"{what}; {advice}" in page.stderr
    monkeypatch.setenv(FAULTS, "raise")
    with pytest.raises(KeyError, match="shown"):
        ask("kernels", tmp_path, "--jobs", "1")


@pytest.mark.skipif(os.name != "posix", reason="devices")
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_devices_and_pipes_are_written_to(export: Path, tmp_path: Path, force: list[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    ask("kernels", export, "--format", "csv", "-o", pipe, *force)
    wanted = ask("kernels", export, "--format", "csv", "-o", "-").text
    assert os.read(reader, 1 << 16).decode() == wanted
    os.close(reader)
    ask("kernels", export, "--format", "csv", "-o", os.devnull, *force)
    assert Path(os.devnull).is_char_device()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown", "parquet"])
def test_an_existing_output_is_kept_unless_forced(export: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    message = refused("kernels", export, "--format", form, "-o", out)
    assert f"{out}: exists already; --force overwrites it." in message
    assert out.read_text(encoding="utf-8") == "mine"
    ask("kernels", export, "--format", form, "-o", out, "--force")
    assert out.read_bytes() != b"mine"
    assert list(tmp_path.iterdir()) == [out]


def test_outputs_that_cannot_be_written(export: Path, tmp_path: Path) -> None:
    assert failed("kernels", export, "-o", tmp_path)["file"] == str(tmp_path)
    assert "cannot be written" in failed("kernels", export, "-o", tmp_path / "no" / "x")["what"]
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(export.read_bytes()[:5000])
    failed("kernels", cut, "-o", tmp_path / "out")
    assert list(tmp_path.iterdir()) == [cut]


def test_the_reports_themselves_are_never_overwritten(export: Path, tmp_path: Path) -> None:
    path, link = Path(shutil.copy(export, tmp_path / "a.sqlite")), tmp_path / "link"
    link.symlink_to(path)
    before = state(path)
    for given in (path, tmp_path, tmp_path / "*.sqlite"):
        for out in (path, link):
            error = failed("kernels", given, "-o", out, "--force")
            assert (error["file"], error["what"]) == (str(out), "is one of the reports")
    assert state(path) == before


def test_no_partial_output(export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up at the last moment: neither the output nor a part of it is left."""

    def fails(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    monkeypatch.setattr(os, "link", fails)
    message = refused("kernels", export, "--format", "csv", "-o", tmp_path / "out.csv")
    assert "No space left on device" in message
    assert not list(tmp_path.iterdir())
