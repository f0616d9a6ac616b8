"""Which rank a report, and each process in it, belongs to; and the evidence for it.

Evidence, strongest first: MPI's own word (MPI_RANKS, thread names "MPI Rank N"), the payload of
NCCL communicator creation, the launcher's environment inside the report, the file name. Of the
environment only the rank keys below are ever read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeGuard

import numpy as np

from nsightpy.errors import UsageError
from nsightpy.readers.nsys.mpi_calls import mpi_ranks
from nsightpy.readers.nsys.nvtx import NVTX, json_object, naming_events
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

# In the order of trust: an inner launcher (mpirun in an srun step) knows better than an outer one.
RANK_KEYS = (
    *("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"),
    *("PALS_RANKID", "FLUX_TASK_RANK", "ALPS_APP_PE", "SLURM_PROCID"),
)
_VARIABLE = re.compile(r'(?:^|[;\x00])([A-Z0-9_]+)="?(\d{1,6})"?(?=[;\x00]|$)')


def rank_variables(text: str) -> dict[str, int]:
    """The rank keys among the variables of an environment, the first of each."""
    values: dict[str, int] = {}
    for key, value in _VARIABLE.findall(text):
        if key in RANK_KEYS:
            values.setdefault(key, int(value))
    return values


GUESS = "guess: order of"
BY_REGEX = "--rank-regex"

# the path of its report, and its id
Process: TypeAlias = tuple[str, int]
Decision: TypeAlias = tuple[int | None, str]

# Longer numbers are dates, times and hashes: no job has a million ranks.
MOST_RANKS = 1_000_000
_LONGEST_RANK = 6
_MPI_THREAD = re.compile(r"MPI Rank (\d{1,6})")
_RANK_WORD = re.compile(r"rank[-_.=]?(\d{1,6})(?!\d)", re.IGNORECASE)
# a lone letter says little: six digits behind it may be a date
_RANK_LETTER = re.compile(r"(?:^|[-_.])r(\d{1,5})(?=[-_.]|$)", re.IGNORECASE)
# as vLLM and others number what ranks write: model-3-of-8
_RANK_OF_WORLD = re.compile(r"(?:^|[-_.])(\d{1,6})-of-(\d{1,6})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reason to believe that a process (pid 0: the whole report) has a rank."""

    rank: int
    source: str
    pid: int = 0


def evidence(
    recorded: Sequence[Evidence],
    launched: Sequence[Evidence],
    name: str,
    pids: Sequence[int],
    rank_regex: str | None = None,
) -> list[Evidence]:
    """All evidence that a report holds, strongest first: what it has `recorded` of its processes.

    The environment of the launcher and the file name (also through the user's expression) speak for
    the whole report, and so only when one process of it did GPU work.
    """
    if len(pids) > 1:
        return list(recorded)
    by_user = [] if rank_regex is None else rank_by_regex(name, rank_regex)
    return [*by_user, *recorded, *launched, *rank_in_name(name)]


def evidence_for(evidence: Iterable[Evidence], pid: int) -> list[Evidence]:
    """The evidence that concerns one process."""
    return [item for item in evidence if item.pid in (0, pid)]


def decide_ranks(evidence: Mapping[Process, Sequence[Evidence]]) -> dict[Process, Decision]:
    """The rank of every process (report path, pid), and the evidence that decided.

    What the user says holds wherever it says anything. Of the rest, the strongest source of
    evidence that gives every process another rank wins; else each process takes its strongest
    evidence, leaving out sources that give several processes the same rank. What no evidence tells
    apart is numbered by the order of the files or processes, and called a guess.
    """
    evidence = {
        process: [item for item in items if item.source == BY_REGEX] or items
        for process, items in evidence.items()
    }
    for source in dict.fromkeys(item.source for items in evidence.values() for item in items):
        ranks = [
            next((item.rank for item in items if item.source == source), None)
            for items in evidence.values()
        ]
        if None not in ranks and len(set(ranks)) == len(ranks):
            return {process: (rank, source) for process, rank in zip(evidence, ranks, strict=True)}
    given: dict[str, list[int]] = {}
    for item in itertools.chain.from_iterable(evidence.values()):
        given.setdefault(item.source, []).append(item.rank)
    # what gives every one of several processes the same rank
    useless = {source for source, ranks in given.items() if len(ranks) > 1 == len(set(ranks))}
    useless -= {BY_REGEX}
    decided: dict[Process, Decision] = {}
    for process, items in evidence.items():
        best = next((item for item in items if item.source not in useless), None)
        decided[process] = (best.rank, best.source) if best else (None, "")
    if len(evidence) > 1 and all(rank is None for rank, _ in decided.values()):
        what = "files" if len({path for path, _ in evidence}) == len(evidence) else "processes"
        return {process: (rank, f"{GUESS} {what}") for rank, process in enumerate(evidence)}
    return decided


def rank_by_regex(name: str, pattern: str) -> list[Evidence]:
    """The rank that the user's expression finds in a file name: its first group, else its match."""
    match = rank_expression(pattern).search(name)
    if match is None:
        return []
    text = match[1] if match.re.groups else match[0]
    if not text or not text.isdecimal() or len(text) > _LONGEST_RANK:
        raise UsageError(f"--rank-regex {pattern!r} finds {text!r} in {name}, which is no rank")
    return [Evidence(int(text), BY_REGEX)]


def rank_expression(pattern: str) -> re.Pattern[str]:
    """The user's expression, compiled; raises UsageError when it is none."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        problem = f"--rank-regex {pattern[:80]!r} is no regular expression: {error}"
        raise UsageError(problem) from None


def rank_in_name(name: str) -> list[Evidence]:
    """The rank in a file name: rank_3, rank3, _r3, 3-of-8; a bare number could be anything."""
    stem = Path(name).name
    match = _RANK_WORD.search(stem) or _RANK_LETTER.search(stem.rsplit(".", 1)[0])
    if match is None and (of_world := _RANK_OF_WORLD.search(stem)):
        match = of_world if int(of_world[1]) < int(of_world[2]) else None
    return [Evidence(int(match[1]), "file name")] if match else []


def is_rank(number: object) -> TypeGuard[int]:
    """Whether what a report gives for a rank can be one."""
    return isinstance(number, int) and 0 <= number < MOST_RANKS


def mpi_evidence(export: NsysExport) -> list[Evidence]:
    """What MPI says of the ranks of processes."""
    ranks = sorted(mpi_ranks(export))
    return [Evidence(rank, "MPI_RANKS", pid) for pid, rank in ranks if is_rank(rank)]


def nvtx_evidence(export: NsysExport) -> list[Evidence]:
    """By what threads are called, and in the largest communicator that each process created."""
    if export.table(NVTX, "text") is None:
        return []
    events = export.once(naming_events)
    order = np.lexsort((events.ints("start_ns"), events.ints("pid")))
    texts = list(events.take(order).tuples("pid", "text", "jsonText"))
    names = [
        Evidence(int(match[1]), "MPI thread name", pid)
        for pid, text, _ in texts
        if (match := _MPI_THREAD.fullmatch(text))
    ]
    best: dict[int, tuple[int, int]] = {}
    for pid, _, payload in texts:
        fields = json_object(payload)
        rank, size = fields.get("Rank"), fields.get("No. of ranks")
        if is_rank(rank) and is_rank(size):
            best[pid] = max(best.get(pid, (0, 0)), (size, rank), key=lambda pair: pair[0])
    return names + [
        Evidence(rank, "NCCL communicator", pid) for pid, (_, rank) in sorted(best.items())
    ]


def environment_evidence(export: NsysExport) -> list[Evidence]:
    """What the launcher told the job of its rank."""
    name: sa.ColumnElement[str] = sa.column("name")
    keys = sa.or_(*(sa.column("value").startswith(f"{key}=") for key in RANK_KEYS))
    wanted = {
        "META_DATA_CAPTURE": sa.and_(name.endswith("ENVIRONMENT_VARIABLE"), keys),
        "TARGET_INFO_SYSTEM_ENV": name == "DeviceEnvironment",
    }
    values: dict[str, int] = {}
    for table, where in wanted.items():
        for _, text in export.file.values(table, (), ("name", "value"), where):
            for key, rank in rank_variables(text or "").items():
                values.setdefault(key, rank)
    return [Evidence(values[key], f"environment {key}") for key in RANK_KEYS if key in values]
