"""nsightpy mcp: read-only tools on allowed folders, asked by the protocol's own client."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.command_table import COMMANDS
from nsightpy.commands.mcp.tools import WITHHELD, Roots, Tool, bounded, guide, tools
from nsightpy.errors import UsageError
from nsightpy.output.formats import document_of
from tests.support.reports import refused, state
from tests.support.samples import SAMPLES, SINGLE, TRAINING

needs_mcp = pytest.mark.skipif(find_spec("mcp") is None, reason="the package mcp is not here")


def asked(roots: Roots, calls: Callable[[Any], Any]) -> Any:
    """What the calls on a client give, the server in this process."""
    import anyio
    from mcp import Client

    from nsightpy.commands.mcp.server import server_of

    async def run() -> Any:
        async with Client(server_of(roots)) as client:
            return await calls(client)

    return anyio.run(run)


def told(name: str, arguments: Mapping[str, Any], *folders: Path) -> tuple[bool, str]:
    """Whether a tool failed, and its text."""
    made = asked(Roots.of(folders or [SAMPLES]), lambda client: client.call_tool(name, arguments))
    (text,) = made.content
    if made.is_error:
        error = made.structured_content["error"]
        assert error["what"] in text.text
        assert made.structured_content["schema"] == "nsightpy.error/1"
    elif name == "skill":
        assert made.structured_content is None
    else:
        assert json.loads(text.text) == made.structured_content
    return made.is_error, text.text


@pytest.mark.slow
@needs_mcp
def test_tools_are_the_commands_that_answer() -> None:
    listed = asked(Roots.of([SAMPLES]), lambda client: client.list_tools()).tools
    names = [tool.name for tool in listed]
    assert names == ["list_reports", "skill", *tools()]
    assert list(tools()) == [name for name, each in COMMANDS.items() if each.answers]
    for tool in listed:
        assert tool.annotations.read_only_hint
        assert tool.annotations.open_world_hint is False
        assert not WITHHELD & tool.input_schema["properties"].keys()
        assert tool.input_schema["additionalProperties"] is False
    (kernels,) = (tool for tool in listed if tool.name == "kernels")
    assert "nsys stats --report cuda_gpu_kern_sum" in kernels.description
    assert kernels.input_schema["properties"]["name"]["enum"] == ["demangled", "base", "mangled"]
    assert kernels.input_schema["required"] == ["reports"]


@pytest.mark.slow
@needs_mcp
def test_a_tool_answers_as_the_library() -> None:
    failed, text = told("kernels", {"reports": ["training_4rank"], "top": 3, "rank": 2})
    assert not failed
    assert json.loads(text) == document_of(nsightpy.kernels(TRAINING, rank=2, top=3))
    paths = {"reports": "training_4rank", "ncu": ["training_4rank.ncu.csv"]}
    failed, text = told("headroom", {**paths, "top": 1})
    assert (failed, len(json.loads(text)["rows"])) == (False, 1)
    assert told("skill", {}) == (False, guide())
    listed = json.loads(told("list_reports", {}, SAMPLES)[1])
    names = {Path(path).name for path in listed["reports"]}
    assert {"single_process.sqlite", "kernels_h100.ncu.csv", "training_memory.pickle"} <= names
    assert {"train_rank0.sqlite", "train_rank0.pt.trace.json.gz"} <= names
    assert not any(name.endswith(("truth.json", ".md")) for name in names)
    assert listed["total_reports"] == len(listed["reports"])


@needs_mcp
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("kernels", {"reports": "/etc/passwd"}, "is not in the allowed folders"),
        ("kernels", {"reports": "no_such.sqlite"}, "there is no such file"),
        ("kernels", {"reports": "x" * 5000}, "File name too long"),
        ("kernels", {"reports": [""]}, "is not in the allowed folders"),
        ("kernels", {}, "kernels needs reports"),
        ("kernels", {"reports": "training_4rank", "tpo": 3}, "takes no tpo"),
        ("kernels", {"reports": "training_4rank", "top": 1001}, "top must be 1 to 1000"),
        ("kernels", {"reports": "training_4rank", "top": "3"}, "top must be integer"),
        ("kernels", {"reports": ["training_4rank"], "jobs": 8}, "takes no jobs"),
        ("kernels", {"reports": ["training_4rank"], "dask": "tcp://x:1"}, "takes no dask"),
        ("kernels", {"reports": [1]}, "reports must be"),
        ("kernels", {"reports": "training_4rank", "by": "colour"}, "cannot split by colour"),
        ("compare", {"before": "a", "save_baseline": "x"}, "takes no save_baseline"),
        ("kernels", {"reports": "single_process.sqlite", "nvtx": "nothing"}, "nothing"),
        (
            "roofline",
            {"reports": "training_4rank.ncu.csv", "ceilings": "/etc/hosts"},
            "not in the allowed",
        ),
        ("cache", {"clear": True}, "there is no tool 'cache'"),
        ("export", {"reports": "training_4rank"}, "there is no tool 'export'"),
        ("timeline", {"reports": "training_4rank"}, "there is no tool 'timeline'"),
        ("skill", {"more": 1}, "skill takes no more"),
    ],
)
def test_what_goes_wrong_is_a_message(name: str, arguments: dict[str, Any], message: str) -> None:
    failed, text = told(name, arguments)
    assert failed
    assert message in text
    assert "Traceback" not in text


@pytest.fixture
def jail(tmp_path: Path) -> Path:
    """A folder with one report, and another beside it that must not be read."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    for folder in (inside, outside):
        shutil.copy(SINGLE, folder / "a.sqlite")
    return inside


OUTSIDE = (
    *("../outside/a.sqlite", "../outside", "*/../../outside/*.sqlite", "link.sqlite", "b.nsys-rep"),
    *("folder/a.sqlite", "folder", "folder/*", "l*.sqlite", ".", "", "a.sqlite\0", "/", "~/x"),
    "*/a.sqlite",
)


@pytest.mark.parametrize("given", OUTSIDE)
def test_nothing_outside_is_read(jail: Path, given: str) -> None:
    (jail / "link.sqlite").symlink_to(jail.parent / "outside" / "a.sqlite")
    (jail / "folder").symlink_to(jail.parent / "outside")
    (jail / "b.nsys-rep").write_bytes(b"report")
    (jail / "b.sqlite").symlink_to(jail.parent / "outside" / "a.sqlite")
    roots = Roots.of([jail])
    with pytest.raises(UsageError, match=r"is not in the allowed folders|no such file"):
        roots.allowed(given)
    assert [path.name for path in roots.reports()] == ["a.sqlite", "b.nsys-rep"]


def test_what_lies_inside_is_read_wherever_it_is_named(jail: Path) -> None:
    (jail / "again.sqlite").symlink_to(jail / "a.sqlite")
    other = jail.parent / "way"
    other.symlink_to(jail)
    roots = Roots.of([other])
    real = str((jail / "a.sqlite").resolve())
    for given in ("a.sqlite", "again.sqlite", real, str(other / "a.sqlite")):
        assert roots.allowed(given) == [real]
    assert roots.allowed(".") == [str(jail.resolve())]
    with pytest.raises(UsageError, match="there is no such file"):
        roots.allowed("b*.sqlite")
    assert refused("mcp", "--root", str(jail / "a.sqlite"), code=2)


@pytest.mark.parametrize("name", [name for name, each in COMMANDS.items() if each.answers])
def test_every_parameter_has_a_type_that_is_checked(name: str) -> None:
    tool = Tool(COMMANDS[name].load())
    properties = tool.input_schema["properties"]
    assert "top" in properties
    for given in properties:
        with pytest.raises(UsageError, match=given):
            tool.answer({given: {"a": 1}}, Roots(()))


def test_rows_and_texts_are_bounded_and_no_file_is_left() -> None:
    roots = Roots.of([SAMPLES])
    asked = {"reports": "single_process.sqlite", "report": "cuda_gpu_trace"}
    before = state(SINGLE), sorted(SAMPLES.rglob("*"))
    trace = tools()["stats"].answer(asked, roots, use_cache=False)
    assert (state(SINGLE), sorted(SAMPLES.rglob("*"))) == before
    assert (len(trace["rows"]), trace["truncated"]) == (50, True)
    everything = nsightpy.stats(SINGLE, report="cuda_gpu_trace")
    assert trace["total_rows"] == len(everything)
    of_ranks = {"reports": "training_4rank", "by": "rank", "top": 20}
    kernels = tools()["kernels"].answer(of_ranks, roots)
    assert len(kernels["rows"]) == len(nsightpy.kernels(TRAINING, by="rank", top=20)) > 50
    document = bounded({"rows": [{"name": "x" * 9000}]})
    assert len(document["rows"][0]["name"]) == 2000


@pytest.mark.slow
@needs_mcp
def test_over_stdio_nothing_else_is_printed() -> None:
    client = {"name": "test", "version": "0"}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    call = {"name": "info", "arguments": {"reports": "training_4rank"}}
    requests = [
        {"id": 1, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    lines = "".join(f"{json.dumps({'jsonrpc': '2.0', **request})}\n" for request in requests)
    command = [sys.executable, "-m", "nsightpy", "mcp", "--root", str(SAMPLES), "--no-cache"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(f"hello\n{lines}")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
        assert server.stdout.read() == ""
    assert server.returncode == 0
    assert len(answers[1]["result"]["structuredContent"]["rows"]) == 4


def test_without_the_package_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from nsightpy.commands.mcp import command

    monkeypatch.setattr(command, "find_spec", lambda _: None)
    assert "pip install 'nsightpy[mcp]'" in refused("mcp", "--root", str(SAMPLES))
