"""Pages of the documentation about commands: the real --help, and what an example really prints."""

import functools
import html
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from terminal import ROOT, terminal_session

from nsightpy.cli.main import cli
from nsightpy.command_table import COMMANDS

JOB = "sample_reports/training_4rank"
MEASURED = f"{JOB}.ncu.csv"
COLUMNS = 110
MOST_LINES = 60
SINGLE = "sample_reports/single_process.sqlite"
# What is shown for a command, before what it draws; one that is not named here is asked about JOB.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "cache": ("",),
    "breakdown": (JOB, f"{JOB} --bins 100"),
    "compare": (f"{JOB}/train_rank0.sqlite {JOB}/train_rank2.sqlite",),
    "export": (f"{SINGLE} -o frames",),
    "headroom": (f"{JOB} --ncu {MEASURED}",),
    "info": (f"{JOB} {SINGLE}",),
    "kernels": (f"{JOB} --top 5", f"{JOB} --top 3 --by rank --name base --format csv"),
    "mcp": (),
    "memory": (SINGLE,),
    "memory-usage": ("sample_reports/training_memory.pickle",),
    "nvtx": (f"{JOB} --top 12",),
    "operators": ("sample_reports/torch_2rank --top 12", f"{JOB} --by module --top 12"),
    "graphs": (SINGLE,),
    "gaps": (JOB, f"{JOB} --by gap --top 8", f"{JOB} --by call --top 8"),
    "report": (f"{JOB} {MEASURED} -o report.html",),
    "instances": (f"{JOB} --of AllReduce --kind collective",),
    "ranks": (JOB, f"{JOB} --by kernel --top 5"),
    "roofline": ("sample_reports/kernels_h100.ncu.csv",),
    "select": (f"{JOB} -- python train.py",),
    "stats": (f"{JOB} -r nvtx_gpu_proj_sum", f"{SINGLE} -r cuda_gpu_trace --top 12"),
    "timeline": (f"{JOB} --iteration 4 -o timeline.png",),
}
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Example:
    """A command line, what it printed, and the files that it wrote."""

    line: str
    printed: str
    notes: str
    files: dict[str, bytes]


def _context() -> click.Context:
    return click.Context(cli, None, "nsightpy", terminal_width=80, **cli.context_settings)


def _command(name: str) -> click.Command:
    command = cli.get_command(_context(), name)
    assert command is not None, name
    return command


def command_names() -> list[str]:
    """The commands in the order of `nsightpy --help`, without hidden ones."""
    return [name for name in cli.list_commands(_context()) if not _command(name).hidden]


def command_page(name: str) -> str:
    examples = "".join(map(_example_section, examples_of(name)))
    shown = f"\n\n## Example\n\n{examples}" if examples else "\n"
    command = _command(name)
    said = command.get_help(click.Context(command, _context(), command.name, terminal_width=80))
    return f"# {name}\n\n```text\n{said}\n```{shown}"


def index_page() -> str:
    shown = ((name, _command(name).get_short_help_str(120)) for name in command_names())
    rows = "".join(f"| [{name}]({name}.md) | {text} |\n" for name, text in shown)
    return (
        "# Commands\n\nHelp and examples on these pages were printed by the commands themselves, "
        "from the [sample reports](../tour.md).\n\n"
        f"| command | |\n|---|---|\n{rows}\n```text\n{cli.get_help(_context())}\n```\n"
    )


def examples_of(name: str) -> Iterator[Example]:
    """The examples of a command, run now; raises ValueError for one that fails."""
    lines = EXAMPLES.get(name, (JOB,))
    if COMMANDS[name].figure and " -o " not in lines[0]:
        lines += (f"{lines[0]} -o {name}.png",)
    return map(functools.partial(_run, name), lines)


@functools.cache
def _run(name: str, arguments: str) -> Example:
    line = f"nsightpy {name} {arguments}".rstrip()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder).resolve()
        (here / "sample_reports").symlink_to(ROOT / "sample_reports")
        printed, notes, code = terminal_session(
            [name, *shlex.split(arguments)],
            COLUMNS,
            here,
            NO_COLOR="1",
            NSIGHTPY_CACHE_DIR=str(here / "cache"),
        )
        if code:
            raise ValueError(f"{line} exits with {code}: {notes}\nSee EXAMPLES in {__file__}.")
        written = (path for path in sorted(here.rglob("*")) if path.is_file())
        files = {str(path.relative_to(here)): path.read_bytes() for path in written}
    printed, notes = (
        _ESCAPES.sub("", text).replace(str(here), "~").rstrip() for text in (printed, notes)
    )
    return Example(line, printed, notes, files)


def _example_section(example: Example) -> str:
    lines = [f"$ {example.line}", *example.printed.splitlines()]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"... {len(lines) - MOST_LINES} more lines"]
    shown = html.escape("\n".join([*lines, *example.notes.splitlines()]), quote=False)
    pictures = "".join(
        f"![what {html.escape(example.line)} draws]({name})\n\n"
        for name in example.files
        if name.endswith((".png", ".svg"))
    )
    return f'<pre class="terminal"><code>{shown}</code></pre>\n\n{pictures}'
