"""Requests that cannot be granted: wrong usage, outputs that must not be written, lost readers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nsightpy.cli.main import run
from tests.support.full_export import small
from tests.support.reports import ask, refused, state


@pytest.fixture(scope="session")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("good") / "good.sqlite").write()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["kernals", "R"], "Did you mean kernels?"),
        (["frobnicate", "R"], "there is no command 'frobnicate'"),
        (["R"], "To read it: nsightpy summarize "),
        (["select", "R", "--script", "plain", "--format", "json"], "--script has one form"),
        (["kernels"], "Missing argument 'REPORT...'"),
        (["kernels", "R", "--frobnicate"], "No such option"),
        (["kernels", "R", "--format", "xml"], "'xml' is not one of"),
        (["kernels", "R", "--by", "colour"], "cannot split by colour; there are rank,"),
        (["kernels", "R", "--by", "rank,colour"], "cannot split by colour"),
        (["kernels", "R", "--name", "pretty"], "'pretty' is not one of"),
        (["kernels", "R", "--top", "-1"], "must be a number from 0"),
        (["kernels", "R", "--jobs", "0"], "must be a number from 1"),
        (["kernels", "R", "--jobs", "two"], "not a valid integer"),
        (["kernels", "R", "--on-error", "ignore"], "'ignore' is not one of"),
        (["breakdown", "R", "--communication", "("], "no regular expression"),
    ],
)
def test_wrong_usage(export: Path, arguments: list[str], words: str) -> None:
    given = [str(export) if word == "R" else word for word in arguments]
    assert words in refused(*given, code=2)


@pytest.mark.parametrize("command", ["kernels", "breakdown"])
@pytest.mark.parametrize(
    "option, value, words",
    [
        ("--from", "soon", "is not a time"),
        ("--from", "", "is not a time"),
        ("--from", "nan", "is not a time"),
        ("--to", "5 parsecs", "is not a time"),
        ("--to", "1e400", "beyond every report"),
        ("--to", "1e999999999s", "is not a time"),
        ("--rank", "all", "names no ranks"),
        ("--rank", "", "names no ranks"),
        ("--rank", "-1", "names no ranks"),
        ("--rank", "3-1", "names no ranks"),
        ("--rank", "0-99999999", "names no ranks"),
        ("--rank", "9" * 40, "names no ranks"),
        ("--device", "gpu0", "names no devices"),
        ("--rank-regex", "rank(", "is no regular expression"),
    ],
)
def test_bad_values_of_the_shared_options(
    export: Path, command: str, option: str, value: str, words: str
) -> None:
    message = refused(command, export, option, value, code=2)
    assert words in message
    assert value in message


def test_a_window_that_ends_before_it_begins(export: Path) -> None:
    assert "later than" in refused("kernels", export, "--from", "5us", "--to", "2us", code=2)


@pytest.mark.parametrize("command", ["kernels", "api", "breakdown", "findings", "summarize"])
def test_a_device_that_did_nothing(export: Path, command: str) -> None:
    message = refused(command, export, "--device", "3,7")
    assert "--device 3, 7: no GPU work on it; there is device 0. See nsightpy info." in message
    assert ask(command, export, "--device", "0-7").code == 0


def test_a_regex_that_finds_no_rank(export: Path) -> None:
    message = refused("breakdown", export, "--rank-regex", "good", code=2)
    assert "'good'" in message
    assert export.name in message


# Outputs


@pytest.mark.skipif(os.name != "posix", reason="devices")
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_devices_and_pipes_are_written_to_as_they_are(
    export: Path, tmp_path: Path, force: list[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    wanted = ask("kernels", export, "--format", "csv").text
    ask("kernels", export, "--format", "csv", "-o", pipe, *force)
    assert os.read(reader, 1 << 16).decode() == wanted
    os.close(reader)
    assert pipe.is_fifo()
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    ask("kernels", export, "--format", "csv", "-o", os.devnull, *force)
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown", "parquet"])
def test_an_existing_output_is_kept_unless_forced(export: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    message = refused("kernels", export, "--format", form, "-o", out)
    assert f"{out}: exists already; --force overwrites it." in message
    assert out.read_text(encoding="utf-8") == "mine"
    ask("kernels", export, "--format", form, "-o", out, "--force")
    assert out.read_bytes() != b"mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_reports_themselves_are_never_overwritten(export: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(export, tmp_path / "a.sqlite"))
    link = tmp_path / "link"
    link.symlink_to(path)
    before = state(path)
    for given in (path, tmp_path, tmp_path / "*.sqlite"):
        for out in (path, link):
            message = refused("kernels", given, "--format", "csv", "-o", out, "--force")
            assert "is one of the reports" in message
    assert state(path) == before


def test_no_half_written_output_stays(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up at the last moment: neither the output nor a part of it is left."""

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    def no_link(*arguments: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "replace", full)
    monkeypatch.setattr(os, "link", no_link)
    message = refused("kernels", export, "--format", "csv", "-o", tmp_path / "out.csv")
    assert "No space left on device" in message
    assert not list(tmp_path.iterdir())


def test_a_report_that_fails_leaves_no_output(export: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(export.read_bytes()[:5000])
    refused("kernels", cut, "--format", "csv", "-o", tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.sqlite"]


def test_dash_is_stdout(export: Path) -> None:
    assert ask("api", export, "-o", "-").stdout == ask("api", export).stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no POSIX pipes")
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_reader_that_leaves_early_makes_no_noise(export: Path, form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "nsightpy", "kernels", str(export), "--format", form]
        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 0


def test_a_signal_keeps_its_exit_code(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nsightpy.query import command

    def terminate(*arguments: object, **options: object) -> None:
        raise SystemExit(143)

    monkeypatch.setattr(command.Request, "of", terminate)
    with pytest.raises(SystemExit) as left:
        run(["kernels", str(export)])
    assert left.value.code == 143


# Several reports


def test_a_bad_report_among_good_ones_is_left_out_and_named(tmp_path: Path, export: Path) -> None:
    shutil.copy(export, tmp_path / "a_rank0.sqlite")
    shutil.copy(export, tmp_path / "a_rank1.sqlite")
    (tmp_path / "a_rank2.sqlite").write_bytes(b"")
    answer = ask("kernels", tmp_path, "--format", "csv")
    assert "left out" in answer.stderr
    assert "a_rank2.sqlite: is empty" in answer.stderr
    message = refused("kernels", tmp_path, "--on-error", "raise")
    assert "a_rank2.sqlite: is empty" in message
