"""Batch scripts: the plan's runs one after another, ncu only in the chosen ranks.

Every run starts the whole job again. In a chosen rank the words of the run are executed as they
are; in every other rank only those after the first `--`: the application, untouched. The rule is
handed to each rank as text, so the script needs to be readable on the first node only.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.ncu_command.filters import as_ranks
from nsightpy.ncu_command.runs import Options, Run, file_line, response_file, shell_words

MPI_RANKS = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "ALPS_APP_PE",
    "SLURM_PROCID",
)
OWN_RANK = "NSIGHTPY_RANK"


@dataclass(frozen=True, slots=True)
class Launcher:
    """How a kind of script starts a job: header, launcher, the variables that hold a rank."""

    header: tuple[str, ...]
    start: tuple[str, ...]
    rank_variables: tuple[str, ...]
    how: str


SCRIPTS = {
    "plain": Launcher((), (), (), "bash SCRIPT"),
    "slurm": Launcher(
        ("#SBATCH --job-name=ncu", "#SBATCH --ntasks={ranks}"),
        ("srun",),
        ("SLURM_PROCID",),
        "sbatch SCRIPT, or bash SCRIPT inside an allocation",
    ),
    "mpi": Launcher(
        ("#PBS -N ncu",),
        ("mpirun", "-n", "{ranks}"),
        MPI_RANKS,
        "bash SCRIPT, or qsub SCRIPT; PALS: --launcher 'mpiexec -n {ranks}'",
    ),
    "torchrun": Launcher(
        (),
        ("torchrun", "--nproc-per-node={ranks}", "--no-python"),
        ("RANK",),
        "bash SCRIPT on every node",
    ),
}
_PER_RANK = """\
# What each rank executes: the chosen ranks all words, the others only the application after --.
per_rank='
ranks=$1
shift
export {own}=${{{variables}}}
if [ -z "${own}" ]; then
  echo "no rank: none of {names} is set" >&2
  exit 2
fi
case " $ranks " in
  *" ${own} "*) exec "$@" ;;
esac
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
'
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


def rank_variable(kind: str) -> str:
    """The variable that holds the rank in every rank of such a script; empty for plain ones."""
    return "" if kind == "plain" else OWN_RANK


def script(
    kind: str,
    runs: Sequence[Run],
    options: Options,
    *,
    titles: Sequence[str] = (),
    ranks: int = 1,
    launcher: Sequence[str] = (),
) -> str:
    """The script of a kind in SCRIPTS; `ranks` is the size of the job, `titles` name the runs."""
    own = SCRIPTS[kind]
    start = tuple(launcher) or tuple(word.format(ranks=ranks) for word in own.start)
    lines = ["#!/usr/bin/env bash"]
    lines += [line.format(ranks=ranks) for line in own.header]
    lines += [
        f"# Made by nsightpy select: {own.how.format(ranks=ranks)}",
        f"# Each of the {len(runs)} runs starts the application again; ncu runs in few ranks only.",
        "set -u",
        'cd "${PBS_O_WORKDIR:-$PWD}" || exit 1',
        "failed=0",
    ]
    if kind == "plain":
        lines += [_ALONE.rstrip()]
    else:
        lines += [f"launch=({shlex.join(start)})", _per_rank(own.rank_variables).rstrip()]
    for place, run in enumerate(runs):
        title = titles[place] if place < len(titles) else run.output
        lines += ["", f"# {_one_line(title)}"]
        file = response_file(run, options)
        lines += [file_line(*file)] if file else []
        lines += [f"run {shlex.quote(as_ranks(run.ranks))} {shlex.join(shell_words(run, options))}"]
    return "\n".join([*lines, "", 'exit "$failed"', ""])


def _per_rank(variables: Sequence[str]) -> str:
    nested = ""
    for name in reversed(variables):
        nested = f"{name}:-${{{nested}}}" if nested else f"{name}:-"
    return _PER_RANK.format(own=OWN_RANK, variables=nested, names=", ".join(variables))


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
