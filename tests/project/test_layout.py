"""Tests lie as the packages do, what several share lies in tests/support."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TESTS = ROOT / "tests"
# Folders that belong to no package of nsightpy, and what they hold.
OTHERS = {
    "agreement": "figures against other tools, real reports and simulated truth",
    "project": "the repository itself: layout, documentation, recipes, simulator",
    "support": "what tests share",
    "goldens": "outputs as they were accepted",
    "stand_ins": "programs in place of NVIDIA's",
}


def test_folders_are_those_of_the_packages() -> None:
    packages = {path.parent.name for path in (ROOT / "nsightpy").glob("*/__init__.py")}
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")} | {"support"}
    assert folders - set(OTHERS) <= packages
    assert packages - folders == {"frames", "results", "workers"}, "tested through reports"
    modules = {path.stem for path in (ROOT / "nsightpy").glob("*.py")}
    flat = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    assert flat <= modules


@pytest.mark.parametrize("text", ["a" * 100_000, b"\xff" * 100_000])
def test_ids_of_tests_fit_into_the_environment_of_processes(
    text: str | bytes, request: pytest.FixtureRequest
) -> None:
    assert len(text) == 100_000
    assert len(request.node.nodeid) < 200


def test_helpers_lie_in_support() -> None:
    allowed = {"__init__.py", "conftest.py"}
    elsewhere = [
        str(path.relative_to(ROOT))
        for path in TESTS.rglob("*.py")
        if not path.name.startswith("test_")
        and path.name not in allowed
        and path.parent.name != "support"
    ]
    assert elsewhere == []


@pytest.mark.slow
def test_no_test_imports_another() -> None:
    imported = [
        f"{path.relative_to(ROOT)} imports {node.module}"
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.")
        if not (node.module or "").startswith("tests.support")
    ]
    assert imported == []
