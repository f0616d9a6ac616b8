"""The house as the imports draw it: data flows one way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "nsightpy"
GROUND = {"errors", "units", "names", "frames", "results", "tracks", "rooflines"}
# Which rooms of nsightpy each room may import, beside itself.
MAY_IMPORT = {
    "errors": set(),
    "units": {"errors"},
    "names": set(),
    "frames": set(),
    "results": set(),
    "rooflines": {"results"},
    "tracks": {"frames"},
    "readers": GROUND,
    "analysis": GROUND,
    "render": GROUND,
    "ncu_reports": GROUND | {"readers"},
    "reports": GROUND | {"readers", "ncu_reports"},
    "worker_processes": set(),
    "workers": GROUND | {"readers", "reports", "worker_processes"},
    "dask_workers": GROUND | {"reports", "workers"},
    "rank_set": GROUND | {"readers", "reports", "ncu_reports", "workers", "dask_workers"},
    "ncu_command": GROUND | {"readers"},
    "verbs": GROUND | {"readers", "reports", "ncu_reports", "rank_set", "analysis", "ncu_command"},
    "pictures": GROUND | {"rank_set", "analysis", "verbs", "render"},
    "cli": GROUND
    | {"pictures", "worker_processes"}
    | {
        "readers",
        "reports",
        "ncu_reports",
        "rank_set",
        "analysis",
        "render",
        "verbs",
        "ncu_command",
    },
    "__main__": {"cli"},
}
FILES = sorted(ROOT.rglob("*.py"))
# Modules that no command needs before it runs.
HEAVY = {"numpy", "pandas", "sqlalchemy", "matplotlib", "pyarrow", "rich", "adbc_driver_manager"}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    modules = imported_modules(ast.parse(path.read_text(encoding="utf-8")))
    rooms = {m.split(".")[1] for m in modules if m.startswith("nsightpy.")}
    unknown = {r for r in rooms if r not in MAY_IMPORT and r != "__version__"}
    assert not unknown, f"rooms without a rule: {unknown}"
    assert rooms - {room, "__version__"} <= MAY_IMPORT[room], f"{path} reaches into {rooms}"


@pytest.mark.parametrize(
    ("base", "folder"),
    [
        (".", "nsightpy"),
        ("scripts", "simulator"),
        ("benchmarks", "harness"),
        ("benchmarks", "simulation"),
    ],
)
def test_no_module_imports_itself_in_a_circle(base: str, folder: str) -> None:
    """Inside rooms, too; the package itself stands aside: it only names what is loaded later."""
    top = ROOT.parent / base
    files = sorted((top / folder).rglob("*.py"))
    own = {".".join(path.relative_to(top).with_suffix("").parts): path for path in files}
    graph = {
        name: {m for m in imported_modules(ast.parse(path.read_text(encoding="utf-8"))) if m in own}
        for name, path in own.items()
    }
    assert any(graph.values())
    list(TopologicalSorter({name: found - {name} for name, found in graph.items()}).static_order())


def test_analyses_touch_no_files_and_no_pandas() -> None:
    for path in (ROOT / "analysis").rglob("*.py"):
        modules = set(imported_modules(ast.parse(path.read_text(encoding="utf-8"))))
        assert not {"pandas", "sqlite3", "sqlalchemy", "pathlib", "matplotlib"} & modules, path


def test_pyplot_is_never_imported() -> None:
    for path in FILES:
        modules = set(imported_modules(ast.parse(path.read_text(encoding="utf-8"))))
        assert "matplotlib.pyplot" not in modules, path


def test_command_files_import_nothing_heavy_at_their_top() -> None:
    for path in [*(ROOT / "cli").glob("*.py"), ROOT / "__init__.py", ROOT / "errors.py"]:
        top = ast.Module(
            [
                node
                for node in ast.parse(path.read_text(encoding="utf-8")).body
                if isinstance(node, ast.Import | ast.ImportFrom)
            ],
            [],
        )
        heavy = {module.split(".")[0] for module in imported_modules(top)} & HEAVY
        assert not heavy, f"{path} imports {heavy} before it is needed"


def test_every_room_is_on_the_map() -> None:
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {room_of(path) for path in FILES} - {"__init__", "__main__"}
    assert [room for room in sorted(rooms) if f"{room}" not in page] == []
