"""The architecture as the imports draw it: data flows one way, two levels deep."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent / "nsightpy"
LONGEST_FILE, LONGEST_FUNCTION = 400, 60
DATA = {"errors", "units", "names", "frames", "results"}
READING = DATA | {"store", "readers", "reports", "workers", "report_sets"}
# Which packages of nsightpy each package may import, beside itself.
MAY_IMPORT = {
    "errors": set(),
    "units": {"errors"},
    "names": set(),
    "frames": set(),
    "results": {"frames", "names", "units"},
    "store": DATA,
    "readers": DATA | {"store"},
    "analysis": DATA,
    "output": DATA,
    "render": DATA | {"output"},
    "reports": DATA | {"readers", "store"},
    "workers": {"errors", "readers", "reports"},
    "report_sets": READING,
    "ncu_command": DATA | {"readers"},
    "query": READING | {"analysis", "output", "command_table"},
    # export writes a folder, compare a baseline, mcp answers in json
    "commands": READING | {"analysis", "ncu_command", "query", "output", "command_table"},
    "job": READING | {"query", "command_table"},
    "cli": READING | {"analysis", "query", "commands", "output", "render", "command_table"},
    "command_table": set(),
    "__main__": {"cli"},
}
FILES = sorted(ROOT.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def folder_of(module: str) -> str:
    """The folder that holds a module of nsightpy, as a dotted name two levels deep."""
    path = ROOT.parent.joinpath(*module.split("."))
    while not (path.is_dir() or path.with_suffix(".py").is_file()):
        path = path.parent
    folder = path if path.is_dir() else path.parent
    return ".".join(folder.relative_to(ROOT).parts[:2])


def test_packages_import_upwards_only() -> None:
    offenders = []
    for path in FILES:
        if (package := package_of(path)) != "__init__":
            modules = imported_modules(tree_of(path))
            used = {m.split(".")[1] for m in modules if m.startswith("nsightpy.")}
            barred = used - {package, "__version__"} - MAY_IMPORT.get(package, set())
            offenders += [f"{path.relative_to(ROOT)} imports {other}" for other in barred]
    assert offenders == []


def test_no_two_folders_import_each_other() -> None:
    """Two levels deep: between packages, and between the folders inside a package."""
    arrows: dict[tuple[str, str], str] = {}
    for path in FILES:
        folder = ".".join(path.parent.relative_to(ROOT).parts[:2])
        for module in imported_modules(tree_of(path)):
            if module.startswith("nsightpy."):
                arrows.setdefault((folder, folder_of(module)), f"{path.relative_to(ROOT)}")
    both = {
        f"{one} and {other}: {arrows[one, other]}, {arrows[other, one]}"
        for one, other in arrows
        if one < other and one and (other, one) in arrows
    }
    assert len(arrows) > 100
    assert sorted(both) == []


@pytest.mark.parametrize(
    ("base", "folder"),
    [(".", "nsightpy"), ("scripts", "simulator"), ("benchmarks", "harness")],
)
def test_no_module_imports_itself_in_a_circle(base: str, folder: str) -> None:
    """Inside folders, too; the package itself stands aside: it only names what is loaded later."""
    top = ROOT.parent / base
    files = sorted((top / folder).rglob("*.py"))
    modules = {".".join(path.relative_to(top).with_suffix("").parts): path for path in files}
    graph = {
        name: {m for m in imported_modules(tree_of(path)) if m in modules} - {name}
        for name, path in modules.items()
    }
    assert any(graph.values())
    list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize(
    ("folders", "barred"),
    [
        ("analysis", "pandas sqlite3 sqlalchemy pathlib matplotlib"),
        ("query commands analysis output render results", "sqlalchemy sqlite3"),
        ("query commands", "nsightpy.readers.sqlite nsightpy.readers.nsys.tables"),
        # queries are typed against reports/system.py, whatever kind of file a report is
        ("query commands", "nsightpy.reports.profiles.NsysReport"),
        (".", "matplotlib.pyplot"),
    ],
)
def test_what_packages_must_not_know(folders: str, barred: str) -> None:
    offenders = [
        f"{path}: {module}"
        for folder in folders.split()
        for path in (ROOT / folder).rglob("*.py")
        for module in sorted(set(imported_modules(tree_of(path))))
        if module.startswith(tuple(barred.split()))
    ]
    assert offenders == []


def test_files_and_functions_are_small() -> None:
    offenders = []
    for path in FILES:
        if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST_FILE:
            offenders.append(f"{path}")
        for node in ast.walk(tree_of(path)):
            lines = getattr(node, "end_lineno", 0) - getattr(node, "lineno", 0) + 1
            if isinstance(node, ast.FunctionDef) and lines > LONGEST_FUNCTION:
                offenders.append(f"{path}: {node.name}")
    assert offenders == []


def test_every_package_is_on_the_page() -> None:
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = {package_of(path) for path in FILES} - {"__init__", "__main__"}
    assert [package for package in sorted(packages) if package not in page] == []


def test_tests_lie_as_the_packages_do() -> None:
    """What several share lies in tests/support; no test imports another."""
    tests = ROOT.parent / "tests"
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    folders = {path.parent.name for path in tests.glob("*/test_*.py")}
    # figures against other tools and simulated truth; the repository itself
    assert folders - {"agreement", "project"} <= packages
    assert packages - folders == {"frames", "results", "workers"}, "tested through reports"
    for path in tests.rglob("*.py"):
        fixed = path.name in ("__init__.py", "conftest.py") or path.parent.name == "support"
        assert fixed or path.name.startswith("test_"), path
        for module in imported_modules(tree_of(path)):
            assert not module.startswith("tests.") or module.startswith("tests.support"), path


@pytest.mark.parametrize("text", ["a" * 100_000, b"\xff" * 100_000])
def test_ids_of_tests_fit_into_the_environment_of_processes(
    text: str | bytes, request: pytest.FixtureRequest
) -> None:
    assert len(text) > len(request.node.nodeid) + 99_000
