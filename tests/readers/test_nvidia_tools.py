"""Finding NVIDIA's tools: the variable, PATH, the install folders, and which of them wins."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from nsightpy.errors import ToolNotFoundError
from nsightpy.readers.tools import nvidia_tools
from nsightpy.readers.tools.nvidia_tools import KINDS, find_tool, run_tool

NSYS_BANNER = "NVIDIA Nsight Systems version {}"
NCU_BANNER = (
    "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {} (build 1) (public-release)"
)


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable, an empty folder before the system's in PATH."""
    for kind in KINDS.values():
        monkeypatch.delenv(kind.variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def tool(path: Path, version: str, banner: str = NSYS_BANNER) -> Path:
    return script(path, f"printf '%s\\n' '{banner.format(version)}'")


def test_documented_versions(tmp_path: Path) -> None:
    for text, version in [
        ("2024.2.3.38-242334140272v0", (2024, 2, 3, 38)),
        ("2022.4.2.1-df9881f", (2022, 4, 2, 1)),
        ("2019.5.2", (2019, 5, 2)),
    ]:
        path = tool(tmp_path / text / "nsys", text)
        assert find_tool("nsys", [str(path)]).version == version


def test_variable_wins_over_newer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tool(tmp_path / "chosen" / "nsys", "2021.1.1.1")
    newer = tool(tmp_path / "path" / "nsys", "2025.1.1.1")
    monkeypatch.setenv("NSIGHTPY_NSYS", str(chosen))
    assert find_tool("nsys", [str(newer)]).path == chosen


def test_wrong_variable_is_an_error_even_with_another_nsys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool(tmp_path / "path" / "nsys", "2025.1.1.1")
    plain = tmp_path / "plain"
    plain.write_text("no tool")
    other = script(tmp_path / "other", "echo Python 3.11")
    failing = script(tmp_path / "failing", "exit 3")
    alien = tmp_path / "alien"
    alien.write_bytes(b"\x00\x01 no format that runs here")
    alien.chmod(0o755)
    for value, why in [
        (tmp_path / "missing", "does not exist"),
        (plain, "is not an executable file"),
        (tmp_path, "is not an executable file"),
        (other, "does not answer --version as Nsight Systems does"),
        (failing, "does not answer --version as Nsight Systems does"),
        (alien, "cannot be run"),
    ]:
        monkeypatch.setenv("NSIGHTPY_NSYS", str(value))
        with pytest.raises(ToolNotFoundError) as caught:
            find_tool("nsys", [])
        assert "NSIGHTPY_NSYS" in caught.value.problem
        assert str(value) in caught.value.problem
        assert why in caught.value.problem
        assert "NSIGHTPY_NSYS" in caught.value.advice


def test_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NSIGHTPY_NSYS", "")
    path = tool(tmp_path / "path" / "nsys", "2025.1.1.1")
    assert find_tool("nsys", []).path == path


def test_highest_version_as_numbers(tmp_path: Path) -> None:
    for version in ("2024.9.1.1", "2024.10.1.1", "2023.4.4.54"):
        tool(tmp_path / "opt" / version / "bin" / "nsys", version)
    tool(tmp_path / "path" / "nsys", "2024.2.3.38")
    found = find_tool("nsys", [str(tmp_path / "opt" / "*" / "bin" / "nsys")])
    assert found.version == (2024, 10, 1, 1)


def test_path_wins_ties_and_over_older(tmp_path: Path) -> None:
    in_path = tool(tmp_path / "path" / "nsys", "2024.2.3.38")
    tool(tmp_path / "opt" / "a" / "nsys", "2024.2.3.38")
    tool(tmp_path / "opt" / "b" / "nsys", "2022.4.2.1")
    assert find_tool("nsys", [str(tmp_path / "opt" / "*" / "nsys")]).path == in_path


def test_version_from_the_folder_when_the_call_fails(tmp_path: Path) -> None:
    for version in ("2024.9.1", "2024.10.1"):
        script(tmp_path / "nsight-systems" / version / "bin" / "nsys", "exit 1")
    globs = [str(tmp_path / "nsight-systems" / "*" / "bin" / "nsys")]
    assert find_tool("nsys", globs).version == (2024, 10, 1)
    answering = tool(tmp_path / "path" / "nsys", "2022.4.2.1")
    assert find_tool("nsys", globs).path == answering


def test_version_from_the_target_of_a_link(tmp_path: Path) -> None:
    real = script(tmp_path / "nsight-systems" / "2023.4.4" / "nsys", "exit 1")
    link = tmp_path / "cuda" / "nsys"
    link.parent.mkdir()
    link.symlink_to(real)
    found = find_tool("nsys", [str(link), str(real)])
    assert (found.path, found.version) == (link, (2023, 4, 4))


def test_a_hanging_version_call_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nvidia_tools, "VERSION_TIMEOUT_S", 0.3)
    monkeypatch.setenv("PATH", os.defpath)
    script(tmp_path / "2024.5.1" / "nsys", "sleep 30 & sleep 30")
    began = time.monotonic()
    found = find_tool("nsys", [str(tmp_path / "*" / "nsys")])
    assert found.version == (2024, 5, 1)
    assert time.monotonic() - began < 5


def test_not_found_says_where_and_what_to_do(tmp_path: Path) -> None:
    broken = script(tmp_path / "opt" / "nsys", "exit 1")
    pattern = str(tmp_path / "opt" / "*")
    with pytest.raises(ToolNotFoundError) as caught:
        find_tool("nsys", [pattern])
    message = str(caught.value)
    assert "nsys was not found" in message
    assert "PATH" in message
    assert pattern in message
    assert str(broken) in message
    assert "Install Nsight Systems, or set NSIGHTPY_NSYS" in message


def test_relative_folders_in_path_are_not_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool(tmp_path / "here" / "nsys", "2025.1.1.1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join(["here", "", "."]))
    with pytest.raises(ToolNotFoundError):
        find_tool("nsys", [])


def test_files_that_cannot_run_are_passed_over(tmp_path: Path) -> None:
    path = tool(tmp_path / "path" / "nsys", "2025.1.1.1")
    path.chmod(stat.S_IRUSR)
    (tmp_path / "opt" / "nsys").mkdir(parents=True)
    older = tool(tmp_path / "old" / "nsys", "2020.1.1.1")
    assert find_tool("nsys", [str(tmp_path / "opt" / "*"), str(older)]).path == older


def test_ncu_is_found_by_the_same_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ncu = tool(tmp_path / "ncu", "2024.2.1.0", NCU_BANNER)
    nsys = tool(tmp_path / "nsys", "2024.2.1.0")
    monkeypatch.setenv("NSIGHTPY_NCU", str(ncu))
    assert find_tool("ncu", []).version == (2024, 2, 1, 0)
    monkeypatch.setenv("NSIGHTPY_NCU", str(nsys))
    with pytest.raises(ToolNotFoundError, match="NSIGHTPY_NCU"):
        find_tool("ncu", [])


def test_install_folders_are_those_of_the_platform() -> None:
    for kind in KINDS.values():
        assert all(pattern.startswith("/") for pattern in kind.linux)
        assert all(pattern.endswith(f"{kind.name}.exe") for pattern in kind.windows)
        assert kind.installs == (kind.windows if os.name == "nt" else kind.linux)


def test_run_tool_does_not_wait_for_who_holds_the_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    path = script(tmp_path / "leaver", "sleep 3 & echo done; exit 4")
    began = time.monotonic()
    run = run_tool([path])
    assert (run.returncode, run.output) == (4, "done\n")
    assert time.monotonic() - began < 2.9
