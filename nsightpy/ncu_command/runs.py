"""One run of ncu: its filters, the words of its command, and the shell line that runs as printed.

Filters take names exactly as they are, or as regular expressions that match nothing else: ncu takes
`-k` once, searches with Boost's Perl syntax, and reads "regex:" at the beginning of a name as its
own word. What is made here is printable ASCII, whatever the names hold.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

APPLICATION = ("APPLICATION",)
_PLAIN = re.compile(r"(?![-@]|regex:)[\x20-\x7e]+")
_WORD = re.compile(r"[A-Za-z0-9_]")
_NVTX_SPECIAL = re.compile(r"([\\@,\[\]/*+])")


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


def name_filter(name: str) -> str:
    """The value of -k for this name alone: itself where that is safe, else an anchored regex."""
    # ^ and $ match at every line of a name; these do not, but few know them
    if _PLAIN.fullmatch(name):
        return name
    return f"regex:\\A({''.join(map(_escaped, name))})(?![\\s\\S])"


def _escaped(character: str) -> str:
    r"""As it is in a regular expression; what is not printable ASCII byte by byte, \x0a."""
    if _WORD.match(character):
        return character
    if character.isascii() and character.isprintable():
        return character if character in " '\"<>,:;&~=!-/%@#`" else f"\\{character}"
    is_byte = "\udc80" <= character <= "\udcff"
    data = character.encode("utf-8", "surrogateescape" if is_byte else "replace")
    return "".join(f"\\x{byte:02x}" for byte in data)


def nvtx_filter(range_name: str, domain: str = "", *, style: str = "PushPop") -> str:
    """The value of --nvtx-include: `name/` for push/pop ranges, `name` for start/end ranges."""
    name, of = (_NVTX_SPECIAL.sub(r"\\\1", text) for text in (range_name, domain))
    path = f"{name}/" if style == "PushPop" else name
    return f"{of}@{path}" if domain else path
