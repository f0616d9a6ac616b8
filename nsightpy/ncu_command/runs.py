"""One run of ncu: its arguments, the shell line that runs as printed, its response file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from nsightpy.ncu_command.filters import NameFilter

# Beyond this a line goes into a response file: Windows takes 32 k in total, Linux 128 k a word.
LONGEST_LINE = 8000
RENAMES_SINCE = (2025, 1)
APPLICATION = ("APPLICATION",)


@dataclass(frozen=True, slots=True)
class Options:
    """What every run of a plan is asked: metrics, application, and how to run it.

    `nvtx`: values of --nvtx-include. `graph`: node or graph where kernels come from CUDA graphs.
    `rank_variable`: goes into the report's name as %q{...}. `version`: of ncu; () = not known.
    """

    metric_set: str = "roofline"
    sections: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    application: tuple[str, ...] = APPLICATION
    nvtx: tuple[str, ...] = ()
    graph: str = ""
    rank_variable: str = ""
    kill: bool = False
    overwrite: bool = False
    from_start: bool = True
    extra: tuple[str, ...] = ()
    version: tuple[int, ...] = ()
    csv: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run: which launches, in which ranks (none: wherever it is started), under what name."""

    kernels: NameFilter
    skip: int
    count: int
    output: str
    ranks: tuple[int, ...] = ()


def argv(run: Run, options: Options) -> list[str]:
    """The whole command as a list of words."""
    return ["ncu", *arguments(run, options), "--", *options.application]


def arguments(run: Run, options: Options, *, names: list[str] | None = None) -> list[str]:
    """ncu's own arguments; `names` stands for the name filter where that is given another way."""
    words = ["--config-file", "off", "--target-processes", "all"]
    words += run.kernels.arguments() if names is None else names
    if run.kernels.base == "demangled" and (options.version or RENAMES_SINCE) >= RENAMES_SINCE:
        words += ["--rename-kernels", "off"]
    if options.nvtx:
        words += ["--nvtx"]
        words += [word for value in options.nvtx for word in ("--nvtx-include", value)]
    words += ["--launch-skip", str(run.skip), "--launch-count", str(run.count)]
    words += ["--graph-profiling", options.graph] if options.graph else []
    words += [] if options.from_start else ["--profile-from-start", "off"]
    words += ["--kill", "yes"] if options.kill else []
    words += ["--set", options.metric_set] if options.metric_set else []
    words += [word for name in options.sections for word in ("--section", name)]
    words += ["--metrics", ",".join(options.metrics)] if options.metrics else []
    return [*words, *options.extra, *_output(run, options)]


def _output(run: Run, options: Options) -> list[str]:
    if options.csv:
        return ["--csv", "--page", "raw"]
    rank = f"_%q{{{options.rank_variable}}}" if options.rank_variable else ""
    return [*(["-f"] if options.overwrite else []), "-o", f"{run.output}{rank}"]


def response_file(run: Run, options: Options) -> tuple[str, str] | None:
    """Name and text of the response file that a long command needs; None for others."""
    if len(shlex.join(argv(run, options))) <= LONGEST_LINE:
        return None
    return f"{run.output}.args", "\n".join([*run.kernels.arguments(bare=True), ""])


def shell_words(run: Run, options: Options) -> list[str]:
    """The command as a list of words, the name filter in its response file where it has one."""
    file = response_file(run, options)
    if file is None:
        return argv(run, options)
    return ["ncu", *arguments(run, options, names=[f"@{file[0]}"]), "--", *options.application]


def file_line(name: str, text: str) -> str:
    """A shell line that writes a response file."""
    return f"printf '%s\\n' {shlex.join(text.split())} > {shlex.quote(name)}"


def shell_line(run: Run, options: Options) -> str:
    """The command as one line for a POSIX shell; it runs as it stands."""
    line = shlex.join(shell_words(run, options))
    file = response_file(run, options)
    return line if file is None else f"{file_line(*file)} && {line}"
