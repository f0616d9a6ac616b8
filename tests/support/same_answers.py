"""Ask every command about one export written in many ways, and compare the bytes.

Every time a process of its own asks all commands: with names numbered from 0 or 10, by large or by
negative ids, rows of all tables shuffled, another PYTHONHASHSEED, on one and on two processors in
turn.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from nsightpy.command_table import COMMANDS
from tests.support.reports import ROOT, ask
from tests.support.rewritten import NUMBERINGS, rewritten

Answers = dict[str, str]
# What is typed at least.
MORE = {
    "headroom": ("--ncu", str(ROOT / "sample_reports" / "training_4rank.ncu.csv")),
    "instances": ("--of", "*"),
    "stats": ("-r", "nvtx_sum"),
    "compare": (str(ROOT / "sample_reports" / "training_4rank"), "--"),
}
# Other sides of commands; the listings that nsys stats has pair and sort rows of their own.
SIDES = (
    *("stats -r cuda_gpu_trace", "stats -r cuda_api_trace", "stats -r cuda_kern_exec_trace"),
    *("stats -r nvtx_gpu_proj_trace", "stats -r nvtx_pushpop_trace", "stats -r mpi_event_trace"),
    *("ranks --by kernel", "ranks --by stage", "ranks --by call", "gaps --by cause"),
    *("gaps --by call", "operators --by module", "nvtx --metrics", "launches --by stream"),
    *("breakdown --bins 50", "instances --of * --bins 20"),
)
QUESTIONS: list[tuple[str, ...]] = [
    *((name, *MORE.get(name, ())) for name, command in COMMANDS.items() if command.answers),
    *(tuple(side.split()) for side in SIDES),
]


def answers() -> Answers:
    """What each command says of the exports in the current folder, and the frames, as digests."""
    asked = {" ".join(words): (*words, ".", "--format", "json") for words in QUESTIONS}
    said = {question: ask(*words, expect=None).everything for question, words in asked.items()}
    with tempfile.TemporaryDirectory() as folder:
        ask("export", ".", "--format", "csv", "-o", folder, "--force")
        for file in sorted(Path(folder).rglob("*.csv")):
            said[str(file.relative_to(folder))] = file.read_bytes()
    return {question: hashlib.sha256(text).hexdigest() for question, text in said.items()}


def answers_of_process(folder: Path, number: int) -> Answers:
    """The answers of a process with this seed, on one processor where it is even."""
    processors = sorted(os.sched_getaffinity(0))[: 1 + number % 2]
    paths = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    text = subprocess.run(
        [sys.executable, __file__],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": str(number), "PYTHONPATH": paths},
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    return dict(json.loads(text))


def differing(report: Path, times: int) -> dict[str, list[str]]:
    """The commands whose answers are not those of the first time, and how it was written then."""
    exports = sorted(report.glob("*.sqlite")) if report.is_dir() else [report]
    numberings, first, odd = list(NUMBERINGS), Answers(), dict[str, list[str]]()
    for number in range(times):
        numbering = numberings[number % len(numberings)]
        with tempfile.TemporaryDirectory() as folder:
            where = Path(folder) / "reports"
            for export in exports:
                rewritten(export, where / export.name, numbering, number)
            found = answers_of_process(where, number)
        first = first or found
        for question in (one for one in first | found if found.get(one) != first.get(one)):
            odd.setdefault(question, []).append(f"{number} ({numbering})")
    return odd


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
