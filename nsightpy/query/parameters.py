"""What the parameters mean that commands share: the words of --help and of Python's help().

The command line makes its options of these, `query.signature` the docstrings of the functions.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function, and the option that is typed for it; without one: library only.

    A parameter whose default is True is turned off by its option, and `meaning` says what then is.
    """

    name: str
    option: str
    metavar: str
    meaning: str
    default: object = None
    choices: tuple[str, ...] = ()
    several: bool = False

    @property
    def typed(self) -> str:
        """The option behind the name, for docstrings: " (--jobs N)"."""
        turned = "False: " if self.default is True else ""
        value = "|".join(self.choices) or self.metavar
        words = f"{turned}{self.option} {value}".strip()
        return f" ({words})" if words else ""


SCOPE = (
    Parameter("rank", "--rank", "SPEC", "Only these ranks: 0,2-5."),
    Parameter("device", "--device", "SPEC", "Only these CUDA devices: 0,2-5."),
    Parameter(
        "from_time",
        "--from",
        "TIME",
        "From this time on, on the clock of all ranks: 1.5s, 200ms, ns.",
    ),
    Parameter("to_time", "--to", "TIME", "Up to this time."),
    Parameter(
        "nvtx",
        "--nvtx",
        "RANGE[@DOMAIN]",
        "Only what NVTX ranges of this name launched; * stands for anything.",
    ),
    Parameter(
        "iteration", "--iteration", "SPEC", "Only these iterations, from 0: 4, 2-5 or steady."
    ),
)
USE_CACHE = Parameter(
    "use_cache", "--no-cache", "", "Keep no exports of binary reports.", default=True
)
RANK_REGEX = Parameter(
    "rank_regex", "--rank-regex", "RE", "Finds the rank in a report's file name."
)
READING = (
    RANK_REGEX,
    Parameter("jobs", "--jobs", "N", "Processors to use."),
    Parameter("dask", "--dask", "ADDRESS", "Work on a Dask cluster: tcp://HOST:PORT or its file."),
    Parameter(
        "on_error",
        "--on-error",
        "",
        "What to do about an unreadable report among several.",
        default="skip",
        choices=("skip", "raise"),
    ),
    USE_CACHE,
)
PROGRESS = Parameter("progress", "", "", "Is called with the share done and what is being done.")
COMMON = (*SCOPE, *READING, PROGRESS)

TOP = Parameter("top", "--top", "N", "First N rows; 0 is all of them.")
# The column of kernels that holds each name of theirs.
NAME_COLUMNS = {"demangled": "name", "base": "base_name", "mangled": "mangled_name"}
NAME = Parameter(
    "name",
    "--name",
    "",
    "Which name of a kernel to group by.",
    default="demangled",
    choices=tuple(NAME_COLUMNS),
)
COMMUNICATION = Parameter(
    "communication",
    "--communication",
    "RE",
    "Kernels whose name matches count as communication, too; may be repeated.",
    default=(),
    several=True,
)
SHARED = {parameter.name: parameter for parameter in (*COMMON, TOP, NAME, COMMUNICATION)}
