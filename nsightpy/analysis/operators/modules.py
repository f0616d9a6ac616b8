"""Calls of modules as a tree: what was called in each, and the device time that it launched.

Modules are calls that contain one another on a thread: nn.Module calls of a PyTorch trace, NVTX
ranges of an Nsight Systems report. The backward pass runs on a thread of autograd's, outside of all
modules; a backward operator has the sequence number of the forward operator that it belongs to, and
so the module in which that one was called.
"""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.nvtx.nesting import PUSH_POP, SEPARATOR, nest, paths
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.operators.device_time import NONE, innermost
from nsightpy.frames import Frame, Ints, Labels

MODULE = "nn.Module: "


def module_calls(functions: Frame) -> Frame:
    """The nn.Module calls among Python calls (start_ns, end_ns, pid, tid, name) as a tree.

    Traces have them that were recorded with_stack or with_modules. Adds domain, parent, depth and
    path, names from the outermost on joined by SEPARATOR.
    """
    calls = functions.take(functions.labels("name").where(lambda name: name.startswith(MODULE)))
    plain = calls.labels("name").renamed(lambda name: name.removeprefix(MODULE))
    constant = {
        "domain": Labels.constant("", calls.rows),
        "style": Labels.constant(PUSH_POP, calls.rows),
    }
    return _tree(Frame({**calls, **constant}), plain)


def range_calls(ranges: Frame) -> Frame:
    """NVTX ranges that open and close on one thread as the same tree, domains apart."""
    nested = ranges.labels("style").equals([PUSH_POP])
    calls = ranges.take(nested & (ranges.ints("tid") == ranges.ints("end_tid")))
    return _tree(calls, folded(calls.labels("name")))


def _tree(calls: Frame, names: Labels) -> Frame:
    nested = nest(calls)
    path = paths(names, nested)
    return Frame({**calls, "parent": nested.parent, "depth": nested.level, "path": path})


def module_paths(operators: Frame, functions: Frame) -> Labels:
    """For each operator the path of the modules that were open on its thread, outermost first.

    `functions` are Python calls (start_ns, end_ns, pid, tid, name); empty outside of modules.
    """
    modules = module_calls(functions)
    path = modules.labels("path")
    shown = tuple(value.replace(SEPARATOR, "/") for value in path.values)
    holder = innermost(modules, operators)
    codes = np.where(
        holder == NONE, 0, path.codes[np.maximum(holder, 0)] + 1 if modules.rows else 0
    )
    return Labels(codes.astype(np.int32), ("", *shown)).merged()


BACKWARD = "backward"


def backward_times(modules: Frame, operators: Frame, device_self: Ints) -> Ints:
    """For each module call, the device time of backward operators of what it called itself, ns.

    `operators` have start_ns, end_ns, pid, tid, parent, depth, sequence and direction, and own
    device times `device_self`. Of several forward operators with one number, the last counts that
    began before; what a backward operator calls belongs to where that one does.
    """
    times = np.zeros(modules.rows, dtype=np.int64)
    forward = forward_operators(operators)
    known = np.flatnonzero(forward != NONE)
    if not len(known) or not modules.rows:
        return times
    owner = np.full(operators.rows, NONE, dtype=np.int64)
    owner[known] = innermost(modules, operators.take(forward[known]))
    owner = inherited(owner, operators.ints("parent"), operators.ints("depth"))
    mine = owner != NONE
    np.add.at(times, owner[mine], device_self[mine])
    return times


def forward_operators(operators: Frame) -> Ints:
    """For each backward operator the row of the forward one that autograd ran it for; NONE: none.

    Numbers count up per process and begin anew in another thread, so the last one before counts.
    """
    rows = np.full(operators.rows, NONE, dtype=np.int64)
    sequence, start = operators.ints("sequence"), operators.ints("start_ns")
    numbered = sequence >= 0
    backward = operators.labels("direction").equals([BACKWARD])
    made, wanted = np.flatnonzero(numbered & ~backward), np.flatnonzero(numbered & backward)
    if not len(made) or not len(wanted):
        return rows
    pid = operators.ints("pid")
    made = made[np.lexsort((start[made], sequence[made], pid[made]))]
    before = _last_before(
        (pid[made], sequence[made], start[made]), (pid[wanted], sequence[wanted], start[wanted])
    )
    some = before != NONE
    rows[wanted[some]] = made[before[some]]
    return rows


def _last_before(made: tuple[Ints, Ints, Ints], wanted: tuple[Ints, Ints, Ints]) -> Ints:
    """The last of the sorted `made` with the same pid and number that is not after; NONE: none."""
    both = [np.concatenate(pair) for pair in zip(made, wanted, strict=True)]
    is_wanted = np.arange(len(both[0])) >= len(made[0])
    order = np.lexsort((is_wanted, both[2], both[1], both[0]))
    place = np.where(is_wanted[order], NONE, order)
    place = np.maximum.accumulate(np.where(place == NONE, NONE, np.arange(len(order))))
    last = np.empty(len(order), dtype=np.int64)
    last[order] = np.where(place == NONE, NONE, order[np.maximum(place, 0)])
    before = last[len(made[0]) :]
    safe = np.maximum(before, 0)
    same = (made[0][safe] == wanted[0]) & (made[1][safe] == wanted[1]) & (before != NONE)
    return np.where(same, before, NONE)


def inherited(owner: Ints, parent: Ints, depth: Ints) -> Ints:
    """Owners of operators; one without takes that of the operator that called it."""
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero((depth == level) & (owner == NONE))
        owner[rows] = owner[parent[rows]]
    return owner
