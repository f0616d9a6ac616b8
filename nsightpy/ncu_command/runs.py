"""One run of ncu: the words of its command, and the shell line that runs as printed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from nsightpy.ncu_command.filters import name_filter

APPLICATION = ("APPLICATION",)


@dataclass(frozen=True, slots=True)
class Options:
    """What every run of a plan is asked: metrics, application, and how to run it.

    `nvtx`: values of --nvtx-include. `graph`: node or graph where kernels come from CUDA graphs.
    `rank_variable`: goes into the report's name as %q{...}.
    """

    metric_set: str = "roofline"
    sections: tuple[str, ...] = ()
    metrics: str = ""
    application: tuple[str, ...] = APPLICATION
    nvtx: tuple[str, ...] = ()
    graph: str = ""
    rank_variable: str = ""
    from_start: bool = True
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the launch of that number among those of a name, in which rank, written where.

    `base` says which of a kernel's names it is: mangled, function or demangled.
    """

    base: str
    name: str
    skip: int
    output: str
    rank: int | None = None
    title: str = ""


def argv(run: Run, options: Options) -> list[str]:
    """The whole command as a list of words."""
    words = ["ncu", "--config-file", "off", "--target-processes", "all"]
    words += ["--kernel-name-base", run.base, "-k", name_filter(run.name)]
    # from ncu 2025.1 on demangled names are simplified otherwise
    words += ["--rename-kernels", "off"] if run.base == "demangled" else []
    words += ["--nvtx"] if options.nvtx else []
    words += [word for value in options.nvtx for word in ("--nvtx-include", value)]
    words += ["--launch-skip", str(run.skip), "--launch-count", "1"]
    words += ["--graph-profiling", options.graph] if options.graph else []
    words += [] if options.from_start else ["--profile-from-start", "off"]
    words += ["--set", options.metric_set] if options.metric_set else []
    words += [word for name in options.sections for word in ("--section", name)]
    words += ["--metrics", options.metrics] if options.metrics else []
    rank = f"_%q{{{options.rank_variable}}}" if options.rank_variable else ""
    return [*words, *options.extra, "-o", f"{run.output}{rank}", "--", *options.application]


def shell_line(run: Run, options: Options) -> str:
    """The command as one line for a POSIX shell; it runs as it stands."""
    return shlex.join(argv(run, options))
