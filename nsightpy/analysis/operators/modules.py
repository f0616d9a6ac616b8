"""Calls of modules as a tree, and which of them each operator was called in."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.nvtx.nesting import PUSH_POP, SEPARATOR, nest, paths
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.operators.device_time import NONE, innermost
from nsightpy.frames import Frame, Labels

MODULE = "nn.Module: "


def module_calls(functions: Frame) -> Frame:
    """The nn.Module calls among Python calls (start_ns, end_ns, pid, tid, name) as a tree.

    Traces have them that were recorded with_stack or with_modules. Adds domain, parent, depth and
    path, names from the outermost on joined by SEPARATOR.
    """
    names = functions.labels("name")
    is_module = np.asarray([name.startswith(MODULE) for name in names.values], dtype=np.bool_)
    mine = is_module[names.codes] if len(is_module) else np.zeros(functions.rows, dtype=np.bool_)
    calls = functions.take(mine)
    labels = calls.labels("name")
    plain = Labels(labels.codes, tuple(name.removeprefix(MODULE) for name in labels.values))
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
