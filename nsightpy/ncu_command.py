"""From a plan to what is typed: ncu's arguments, shell lines, batch scripts.

Filters take names exactly as they are, or as regular expressions that match nothing else: ncu takes
`-k` once, searches with Boost's Perl syntax, and reads "regex:" at the beginning of a name as its
own word. What is made here is printable ASCII, whatever the names hold.

Every run of a script starts the whole job again. In its rank the words of the run are executed as
they are; in every other rank only those after the first `--`: the application, untouched. The rule
is handed to each rank as text, so the script needs to be readable on the first node only.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.readers.nsys.identity import RANK_KEYS
from nsightpy.units import counted

APPLICATION = ("APPLICATION",)
_PLAIN = re.compile(r"(?![-@]|regex:)[\x20-\x7e]+")
_WORD = re.compile(r"[A-Za-z0-9_]")
_NVTX_SPECIAL = re.compile(r"([\\@,\[\]/*+])")
# What launchers set in every process; RANK alone is set by hand and by torchrun.
MPI_RANKS = tuple(key for key in RANK_KEYS if key != "RANK")
OWN_RANK = "NSIGHTPY_RANK"


@dataclass(frozen=True, slots=True)
class Options:
    """What every run of a plan is asked: metrics, application, and how to run it.

    `nvtx`: values of --nvtx-include. `graph`: node or graph where kernels come from CUDA graphs.
    `rank_variable`: goes into the report's name as %q{...}.
    """

    metric_set: str = "roofline"
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


@dataclass(frozen=True, slots=True)
class Job:
    """How large a job is, as far as its reports tell: ranks, on how many nodes."""

    ranks: int = 1
    nodes: int = 1


def _launcher(kind: str, job: Job) -> tuple[list[str], str, tuple[str, ...]]:
    """How a kind of script starts a job: header, words for a shell, the variables with a rank."""
    per_node, several = -(-job.ranks // job.nodes), job.nodes > 1
    if kind == "slurm":
        header = ["#SBATCH --job-name=ncu", f"#SBATCH --ntasks={job.ranks}"]
        if several:
            header += [f"#SBATCH --nodes={job.nodes}", f"#SBATCH --ntasks-per-node={per_node}"]
        return header, "srun", ("SLURM_PROCID",)
    if kind == "mpi":
        header = [
            "#PBS -N ncu",
            "# What PBS may ask of a job: fill in, and take away the first # of the line.",
            f"##PBS -l select={job.nodes}:mpiprocs={per_node}",
            "##PBS -l walltime=HH:MM:SS",
            "##PBS -l filesystems=NAME:NAME",
            "##PBS -q QUEUE",
            f"# With PALS: launch=(mpiexec -n {job.ranks})",
        ]
        return header, f"mpirun -n {job.ranks}", MPI_RANKS
    words = f"torchrun --nproc-per-node={per_node} --no-python"
    if several:
        words += f" --nnodes={job.nodes} --rdzv-backend=c10d --rdzv-endpoint={_FIRST_NODE}"
    return ["# To be run on every node."], words, ("RANK",)


_FIRST_NODE = '"${MASTER_ADDR:?is to name the first node}:${MASTER_PORT:-29500}"'
_PER_RANK = """\
# What each rank executes: the chosen rank all words, the others only the application after --.
# It travels as one line: not every launcher hands on line ends.
per_rank='
rank=$1;
shift;
export {own}=${{{variables}}};
if [ -z "${own}" ]; then
  echo "no rank: none of {names} is set" >&2;
  exit 2;
fi;
if [ "${own}" = "$rank" ]; then exec "$@"; fi;
while [ "$1" != -- ]; do shift; done;
shift;
exec "$@"
'
per_rank=${{per_rank//$'\\n'/ }}
run() {{
  "${{launch[@]}}" bash -c "$per_rank" per_rank "$@" || failed=1
}}
"""
_ALONE = """\
run() {
  shift
  "$@" || failed=1
}
"""


def script(kind: str, runs: Sequence[Run], options: Options, job: Job) -> str:
    """The script of a kind: plain, slurm, mpi or torchrun."""
    header, launch, names = ([], "", ()) if kind == "plain" else _launcher(kind, job)
    lines = [
        *("#!/usr/bin/env bash", *header),
        "# Made by nsightpy select: each run starts the application, ncu in the chosen rank only.",
        "set -u",
        'cd "${PBS_O_WORKDIR:-$PWD}" || exit 1',
        "failed=0",
    ]
    if launch:
        nested = ""
        for name in reversed(names):
            nested = f"{name}:-${{{nested}}}" if nested else f"{name}:-"
        lines += [
            f"# How the job is started: as the {counted(job.ranks, 'rank')} of the reports.",
            f"launch=({launch})",
            _PER_RANK.format(own=OWN_RANK, variables=nested, names=", ".join(names)).rstrip(),
        ]
    else:
        lines += [_ALONE.rstrip()]
    for run in runs:
        title = "".join(c if c.isprintable() else " " for c in run.title)
        rank = "" if run.rank is None else str(run.rank)
        lines += ["", f"# {title}", f"run {shlex.quote(rank)} {shell_line(run, options)}"]
    return "\n".join([*lines, "", 'exit "$failed"', ""])
