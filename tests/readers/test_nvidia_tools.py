"""Finding NVIDIA's tools: the variable, PATH, the install folders, and which of them wins."""

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


@pytest.mark.parametrize(
    ("name", "banner", "text", "version"),
    [
        ("nsys", NSYS_BANNER, "2024.2.3.38-242334140272v0", (2024, 2, 3, 38)),
        ("nsys", NSYS_BANNER, "2022.4.2.1-df9881f", (2022, 4, 2, 1)),
        ("nsys", NSYS_BANNER, "2019.5.2", (2019, 5, 2)),
        ("ncu", NCU_BANNER, "2024.2.1.0", (2024, 2, 1, 0)),
    ],
)
def test_documented_versions(
    name: str, banner: str, text: str, version: tuple[int, ...], tmp_path: Path
) -> None:
    assert find_tool(name, [str(tool(tmp_path / name, text, banner))]).version == version


def test_the_variable_wins_over_newer_ones_unless_it_is_empty(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = tool(tmp_path / "chosen" / "nsys", "2021.1.1.1")
    newer = tool(tmp_path / "path" / "nsys", "2025.1.1.1")
    for value, path in ((str(chosen), chosen), ("", newer)):
        monkeypatch.setenv("NSIGHTPY_NSYS", value)
        assert find_tool("nsys", []).path == path


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (None, "does not exist"),
        (b"no tool", "is not an executable file"),
        (b"#!/bin/sh\necho Python 3.11", "does not answer --version as Nsight Systems does"),
        (b"#!/bin/sh\necho NVIDIA Nsight Systems version 2025.1.1; exit 3", "does not answer"),
        (b"#!/bin/sh\necho NVIDIA Nsight Compute version 2025.1.1", "does not answer"),
        (b"\x00\x01 no format that runs here", "cannot be run"),
    ],
)
def test_a_wrong_variable_is_an_error_even_with_another_nsys(
    body: bytes | None, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool(tmp_path / "path" / "nsys", "2025.1.1.1")
    path = tmp_path / "chosen"
    if body is not None:
        path.write_bytes(body)
        path.chmod(0o644 if body == b"no tool" else 0o755)
    monkeypatch.setenv("NSIGHTPY_NSYS", str(path))
    with pytest.raises(ToolNotFoundError, match="NSIGHTPY_NSYS is set to") as caught:
        find_tool("nsys", [])
    assert str(path) in caught.value.problem
    assert why in caught.value.problem
    assert "NSIGHTPY_NSYS" in caught.value.advice


@pytest.mark.parametrize(
    ("versions", "in_path", "found"),
    [
        (["2024.9.1.1", "2024.10.1.1"], "2024.2.3.38", "opt/2024.10.1.1"),  # as numbers
        (["2024.2.3.38", "2022.4.2.1"], "2024.2.3.38", "path"),
        (["2022.4.2.1"], "2024.2.3.38", "path"),
    ],
)
def test_the_newest_wins_and_path_among_equals(
    versions: list[str], in_path: str, found: str, tmp_path: Path
) -> None:
    for version in versions:
        tool(tmp_path / "opt" / version / "nsys", version)
    tool(tmp_path / "path" / "nsys", in_path)
    assert find_tool("nsys", [str(tmp_path / "opt" / "*" / "nsys")]).path == (
        tmp_path / found / "nsys"
    )


def test_what_hangs_or_cannot_run_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvidia_tools, "VERSION_TIMEOUT_S", 0.3)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "path"), os.defpath]))
    script(tmp_path / "opt" / "hangs", "sleep 30 & sleep 30")
    tool(tmp_path / "path" / "nsys", "2025.1.1.1").chmod(stat.S_IRUSR)
    (tmp_path / "opt" / "nsys").mkdir()
    older = tool(tmp_path / "old" / "nsys", "2020.1.1.1")
    began = time.monotonic()
    assert find_tool("nsys", [str(tmp_path / "opt" / "*"), str(older)]).path == older
    assert time.monotonic() - began < 5


def test_not_found_says_where_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Relative folders in PATH are not asked."""
    tool(tmp_path / "here" / "nsys", "2025.1.1.1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join(["here", "", "."]))
    broken = script(tmp_path / "opt" / "nsys", "exit 1")
    pattern = str(tmp_path / "opt" / "*")
    with pytest.raises(ToolNotFoundError, match="nsys was not found") as caught:
        find_tool("nsys", [pattern])
    message = str(caught.value)
    for part in ("PATH", pattern, str(broken), "Install Nsight Systems, or set NSIGHTPY_NSYS"):
        assert part in message


def test_run_tool_does_not_wait_for_who_holds_the_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    path = script(tmp_path / "leaver", "sleep 3 & echo done; exit 4")
    began = time.monotonic()
    assert run_tool([path]) == (4, "done\n")
    assert time.monotonic() - began < 2.9
