"""Options: what is typed for the parameters of commands, and the ones that commands share.

A parameter's option stands in its annotation, once: `top: Top = None`. The command line, help(),
the tools of agents and the documentation are made of it (query.command).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, TypedDict

from nsightpy.errors import UsageError, require_choice
from nsightpy.report_sets.report_set import Progress


@dataclass(frozen=True, slots=True)
class Option:
    """What a parameter means, and how it is typed on the command line.

    `typed`: the option where it is not --NAME, with a short form behind it: "--report -r"; empty:
    for programs only. A parameter that is True by default is turned off by its option, and `help`
    says what then is. `several`: may be given more than once. `least`, `most`: of numbers.
    """

    help: str
    metavar: str = ""
    typed: str | None = None
    choices: tuple[str, ...] = ()
    several: bool = False
    least: float | None = None
    most: float | None = None

    def check(self, name: str, value: object) -> None:
        """Raise UsageError for a value that the parameter of that name cannot have."""
        if self.choices and isinstance(value, str):
            require_choice(name, value, self.choices)
        if self.least is None and self.most is None:
            return
        low, high = self.least, self.most
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if not known or not (low or 0) <= value <= (float("inf") if high is None else high):  # type: ignore[operator]
            bounds = f"from {low or 0:g}" + ("" if high is None else f" to {high:,.10g}")
            raise UsageError(f"{name} must be a number {bounds}, not {value!r}")


# The column of kernels that holds each name of theirs.
NAME_COLUMNS = {"demangled": "name", "base": "base_name", "mangled": "mangled_name"}

Top: TypeAlias = Annotated[int | None, Option("First N rows; 0 is all of them.", "N", least=0)]
NameStyle: TypeAlias = Annotated[
    str, Option("Which name of a kernel to group by.", choices=tuple(NAME_COLUMNS))
]
Communication: TypeAlias = Annotated[
    Iterable[str],
    Option(
        "Kernels whose name matches count as communication, too; may be repeated.",
        "RE",
        several=True,
    ),
]
UseCache: TypeAlias = Annotated[bool, Option("Keep nothing of what is read.", typed="--no-cache")]


class Running(TypedDict, total=False):
    """How a function is run over reports of any kind."""

    jobs: Annotated[int | None, Option("Processors to use.", "N", least=1)]
    dask: Annotated[
        object, Option("Work on a Dask cluster: tcp://HOST:PORT or its file.", "ADDRESS")
    ]
    on_error: Annotated[
        Literal["skip", "raise"],
        Option("What to do about an unreadable report among several.", choices=("skip", "raise")),
    ]
    progress: Annotated[
        Progress | None, Option("Is called with the share done and what is being done.", typed="")
    ]


class Reading(Running, total=False):
    """The same with how their ranks are found."""

    rank_regex: Annotated[str | None, Option("Finds the rank in a report's file name.", "RE")]


class Scoping(TypedDict, total=False):
    """Which part of the reports a question is about."""

    rank: Annotated[str | int | None, Option("Only these ranks: 0,2-5.", "SPEC")]
    device: Annotated[str | int | None, Option("Only these CUDA devices: 0,2-5.", "SPEC")]
    from_time: Annotated[
        str | int | None,
        Option(
            "From this time on, on the clock of all ranks: 1.5s, 200ms, ns.",
            "TIME",
            typed="--from",
        ),
    ]
    to_time: Annotated[str | int | None, Option("Up to this time.", "TIME", typed="--to")]
    nvtx: Annotated[
        str | None,
        Option(
            "Only what NVTX ranges of this name launched; * stands for anything.",
            "RANGE[@DOMAIN]",
        ),
    ]
    iteration: Annotated[
        str | int | None, Option("Only these iterations, from 0: 4, 2-5 or steady.", "SPEC")
    ]


class Common(Scoping, Reading, total=False):
    """Options of every command on reports of a whole system."""

    use_cache: UseCache


DEFAULTS = {"on_error": "skip", "use_cache": True}
