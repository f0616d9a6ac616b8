"""With --format json every failure is data, too: one line on stderr, while stdout has no answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from simulator import Export

from nsightpy import __version__
from nsightpy.errors import FAULTS
from nsightpy.query import command
from nsightpy.reports.nsys import NsysReport
from tests.support.reports import ask


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return one_kernel(tmp_path_factory.mktemp("good") / "good.sqlite")


def one_kernel(path: Path) -> Path:
    made = Export(path)
    made.gpu()
    made.cuda_device()
    made.kernel(1_000, 1_600, "k", launch=(500, 600))
    return made.write()


def failed(*arguments: str | Path, code: int = 1, said: str = "nsightpy: ") -> dict[str, Any]:
    """What a command that fails says as data; its message for people is what it says without."""
    answer = ask(*arguments, "--format", "json", expect=code)
    *message, last = answer.stderr.splitlines()
    assert answer.stdout == b""
    assert message
    assert message[0].startswith(said)
    document = json.loads(last)
    assert (document["schema"], document["tool_version"]) == ("nsightpy.error/1", __version__)
    assert list(document) == ["schema", "tool_version", "error"]
    assert list(document["error"]) == ["file", "what", "what_to_do"]
    error: dict[str, Any] = document["error"]
    whole = " ".join(" ".join(message).split())
    assert all(" ".join(part.split()) in whole for part in (error["what"], error["file"] or ""))
    return error


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "no.sqlite"
    error = failed("kernels", missing)
    assert error["file"] == str(missing)
    assert error["what"] == "no such file"


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "is empty"), (b"SQLite format 3\0" + b"\xff" * 5000, ""), (b"{]", "")],
)
def test_a_file_that_is_damaged(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    error = failed("kernels", path)
    assert error["file"] == str(path)
    assert what in error["what"]


def test_what_a_capture_does_not_hold(export: Path) -> None:
    error = failed("kernels", export, "--nvtx", "step")
    assert error["file"] == str(export)
    assert "range" in error["what"]
    assert "nsys profile" in error["what_to_do"] or "-t cuda,nvtx" in error["what_to_do"]


@pytest.mark.parametrize(
    "command",
    [
        *("collectives", "gaps", "gaps --by call", "graphs", "memory", "memory-usage"),
        *("nvtx", "operators", "ranks --by kernel", "ranks --by stage", "ranks --by call"),
    ],
)
def test_nothing_to_list_is_an_answer(command: str, export: Path) -> None:
    document = json.loads(ask(*command.split(), export, "--format", "json").stdout)
    assert document["rows"] == []
    said = json.dumps(document["notes"])
    wanted = ("holds no ", "recorded no ", "No pipeline: ", "needs at least two ranks")
    assert any(text in said for text in wanted)


def test_a_tool_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("NSIGHTPY_NSYS", str(tmp_path / "no-such-nsys"))
    error = failed("kernels", tmp_path / "a.nsys-rep")
    assert error["file"]
    assert error["what_to_do"]


@pytest.mark.parametrize(
    ("option", "what"),
    [
        (("--frobnicate",), "No such option"),
        (("--top", "-1"), "must be a number from 0"),
        (("--by", "colour"), "cannot split by colour"),
        (("--rank", "x"), "names no ranks"),
        (("--from", "5us", "--to", "2us"), "later than"),
    ],
)
def test_wrong_usage(export: Path, option: tuple[str, ...], what: str) -> None:
    said = "Usage: " if option[0] == "--frobnicate" else "nsightpy: "
    error = failed("kernels", export, *option, code=2, said=said)
    assert what in error["what"]
    assert error["file"] is None
    assert said != "Usage: " or error["what_to_do"] == "nsightpy kernels --help"


def test_a_command_that_is_not_there(export: Path) -> None:
    error = failed("kernals", export, code=2, said="Usage: ")
    assert "Did you mean kernels?" in error["what"]
    assert error["what_to_do"] == "nsightpy --help"


def test_an_output_that_must_not_be_written(export: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("mine", encoding="utf-8")
    error = failed("kernels", export, "-o", out)
    expected = {"file": str(out), "what": "exists already", "what_to_do": "--force overwrites it."}
    assert error == expected
    assert out.read_text(encoding="utf-8") == "mine"
    copy = Path(shutil.copy(export, tmp_path / "a.sqlite"))
    assert failed("kernels", copy, "-o", copy, "--force")["what"] == "is one of the reports"
    assert failed("kernels", export, "-o", tmp_path)["file"] == str(tmp_path)
    assert "cannot be written" in failed("kernels", export, "-o", tmp_path / "no" / "x")["what"]


@pytest.mark.parametrize(
    ("raised", "code", "what"),
    [
        (MemoryError(), 1, "out of memory"),
        (OSError(28, "No space left on device"), 1, "the output cannot be written: No space left"),
        (OSError(5, "Input/output error", "/a/b"), 1, "Input/output error"),
        (ZeroDivisionError("by zero"), 1, "(ZeroDivisionError: by zero)"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_nobody_foresaw(
    export: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, what: str
) -> None:
    def raises(*arguments: object, **options: object) -> None:
        raise raised

    monkeypatch.setattr(command.Request, "of", raises)
    monkeypatch.setattr("nsightpy.cli.failures.give_up", lambda *streams: None)
    monkeypatch.delenv(FAULTS)
    is_fault = isinstance(raised, ZeroDivisionError)
    said = f"nsightpy failed on {export} (" if is_fault else "" if code == 130 else "nsightpy: "
    error = failed("kernels", export, code=code, said=said)
    assert what in error["what"]
    file = "/a/b" if isinstance(raised, OSError) and raised.errno == 5 else None
    assert error["file"] == (str(export) if is_fault else file)


@pytest.mark.slow
def test_a_fault_is_data_beside_the_answer_about_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of the other reports on stdout, exit code 1 all the same."""
    for name in ("a", "b"):
        one_kernel(tmp_path / f"{name}.sqlite")

    def broken(report: NsysReport, name: str, columns: object = None) -> object:
        if report.path.stem == "b" and name == "kernels":
            raise KeyError("shown")
        return whole(report, name, columns)  # type: ignore[arg-type]

    whole = NsysReport.frame
    monkeypatch.setattr(NsysReport, "frame", broken)
    monkeypatch.delenv(FAULTS)
    answer = ask("kernels", tmp_path, "--jobs", "1", "--format", "json", expect=1)
    what = f"nsightpy failed on {tmp_path / 'b.sqlite'} (KeyError: 'shown')"
    assert answer.json["rows"]
    assert f"left out: {what}" in answer.json["notes"]
    *message, last = answer.stderr.splitlines()
    advice = "this is a fault of nsightpy, please report it; -v shows where"
    assert message[-1] == f"{what}; {advice}"
    error = {"file": str(tmp_path / "b.sqlite"), "what": what, "what_to_do": advice}
    assert json.loads(last)["error"] == error
    page = ask("report", tmp_path, "--jobs", "1", "-o", tmp_path / "page.html", expect=1)
    assert f"{what}; {advice}" in page.stderr
    monkeypatch.setenv(FAULTS, "raise")
    with pytest.raises(KeyError, match="shown"):
        ask("kernels", tmp_path, "--jobs", "1")


def test_other_formats_have_the_message_alone(export: Path, tmp_path: Path) -> None:
    for options in ((), ("--format", "csv"), ("--format", "markdown")):
        answer = ask("kernels", tmp_path / "no", *options, expect=1)
        assert "error/1" not in answer.stderr
    words = ("select", tmp_path / "no", "--", "python", "train.py", "--format", "json")
    assert "error/1" not in ask(*words, expect=1).stderr
    assert "error/1" in ask("kernels", tmp_path / "no", "--format=json", expect=1).stderr


def test_a_name_is_one_line_of_ascii(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m b\N{SNOWMAN}.sqlite"
    last = ask("kernels", path, "--format", "json", expect=1).stderr.splitlines()[-1]
    assert last.isascii()
    assert last.isprintable()
    assert json.loads(last)["error"]["file"] == str(path)


def test_a_gate_that_fails_is_an_answer(tmp_path: Path) -> None:
    sides = []
    for name, length in (("before", 10_000), ("after", 40_000)):
        made = Export(tmp_path / f"{name}.sqlite")
        made.gpu()
        made.cuda_device()
        for at in range(0, 50 * length, length):
            made.kernel(at + 200, at + 100 + length, "k", launch=(at, at + 100))
        sides.append(made.write())
    answer = ask("compare", *sides, "--gate", "5%", "--format", "json", expect=None)
    assert answer.code == 3
    assert answer.json["schema"] == "nsightpy.compare/1"
    assert "error/1" not in answer.stderr
