"""Time and anonymous memory of whole processes, run in turns so that drift hits all alike."""

import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path

# How often the memory of a running process is looked at; a shorter peak may be missed.
_SAMPLE_S = 0.005
_ANONYMOUS = "RssAnon:"


def nothing() -> None:
    """What is done where nothing is to be done."""


class CommandFailedError(Exception):
    """A measured command did not do its work, so its time means nothing."""


@dataclass(frozen=True)
class Command:
    """One process to measure.

    `setup` runs once before everything, `prepare` before each run, neither is timed.
    `voided_by` is a text on stderr that says the command took another path than the meant one.
    `output` is the file or folder it writes, whose size counts.
    """

    name: str
    argv: tuple[str, ...]
    stdin: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    setup: Callable[[], None] = nothing
    prepare: Callable[[], None] = nothing
    voided_by: str | None = None
    output: Path | None = None


@dataclass(frozen=True)
class Sample:
    """What one process took; the peak is of its anonymous memory, without mapped files."""

    seconds: float
    peak_bytes: float
    output_bytes: float = 0.0
    cpu_seconds: float = 0.0


Round = Mapping[str, Sample]


def run_once(command: Command, cwd: Path) -> Sample:
    """Run the command to its end and measure it; raises CommandFailedError unless it succeeded."""
    if shutil.which(command.argv[0]) is None:
        raise CommandFailedError(f"{command.name}: there is no {command.argv[0]}")
    command.prepare()
    environment = {**os.environ, **command.environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with (
        tempfile.TemporaryFile() as stderr,
        Path(command.stdin or os.devnull).open("rb") as stdin,
        tempfile.TemporaryFile() as stdout,
    ):
        begin = time.perf_counter()
        process = subprocess.Popen(
            command.argv, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, cwd=cwd
        )
        ended, sizes = threading.Event(), [0]
        watching = threading.Thread(target=_watch, args=(process.pid, ended, sizes))
        watching.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        ended.set()
        watching.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        messages = stderr.read().decode(errors="replace")
    voided = command.voided_by is not None and command.voided_by in messages
    if process.returncode or voided:
        reason = "took the wrong path" if voided else f"exit code {process.returncode}"
        line = " ".join(command.argv)
        raise CommandFailedError(f"{command.name}: {reason}\n  {line}\n{messages[-2_000:]}")
    written = _size(command.output) if command.output else 0
    return Sample(seconds, max(sizes), written, usage.ru_utime + usage.ru_stime)


def _watch(process_id: int, ended: threading.Event, sizes: list[int]) -> None:
    """Collect the anonymous memory of a process until it ended, in bytes; Linux alone tells it."""
    status = Path(f"/proc/{process_id}/status")
    while not ended.wait(_SAMPLE_S):
        with suppress(OSError):
            lines = status.read_text(encoding="ascii", errors="replace").splitlines()
            sizes += [1024 * int(line.split()[1]) for line in lines if line.startswith(_ANONYMOUS)]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())


def measure(
    commands: Sequence[Command], repeat: int, cwd: Path, progress: Callable[[str], None]
) -> list[Round]:
    """`repeat` rounds of all commands in turn, after one round that is thrown away.

    A command that fails once is in no round.
    """
    rounds: list[dict[str, Sample]] = []
    left = {command.name: command for command in commands}
    for number in range(repeat + 1):
        rounds.append({})
        for name, command in list(left.items()):
            try:
                sample = rounds[-1][name] = run_once(command, cwd)
            except (CommandFailedError, subprocess.CalledProcessError) as failure:
                progress(f"NOT MEASURED: {failure}")
                del left[name]
                continue
            label = f"round {number}" if number else "warm-up"
            peak = sample.peak_bytes / 1e6
            progress(f"{label:8}  {sample.seconds:8.3f} s  {peak:7.0f} MB  {name}")
    return [{name: samples[name] for name in left} for samples in rounds[1:]]


def medians(rounds: Sequence[Round]) -> Round:
    return {
        name: Sample(
            *map(statistics.median, zip(*(astuple(one[name]) for one in rounds), strict=True))
        )
        for name in rounds[0]
    }
