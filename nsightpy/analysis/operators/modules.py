"""Which nn.Module each operator was called in (traces recorded with_stack or with_modules)."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.nvtx.nesting import SEPARATOR, nest, paths
from nsightpy.analysis.operators.device_time import NONE, innermost
from nsightpy.frames import Frame, Ints, Labels

MODULE = "nn.Module: "


def module_paths(operators: Frame, functions: Frame) -> Labels:
    """For each operator the path of the modules that were open on its thread, outermost first.

    `functions` are Python calls (start_ns, end_ns, pid, tid, name); empty outside of modules.
    """
    names = functions.labels("name")
    is_module = np.asarray([name.startswith(MODULE) for name in names.values], dtype=np.bool_)
    mine = is_module[names.codes] if len(is_module) else np.zeros(functions.rows, dtype=np.bool_)
    calls = functions.take(mine)
    same = Labels.constant("", calls.rows)
    nested = nest(Frame({**calls, "domain": same, "style": Labels.constant("PushPop", calls.rows)}))
    own = calls.labels("name")
    plain = Labels(own.codes, tuple(name.removeprefix(MODULE) for name in own.values))
    path = paths(plain, nested)
    shown = tuple(value.replace(SEPARATOR, "/") for value in path.values)
    tree = Frame({**calls, "parent": nested.parent, "depth": nested.level})
    found: Ints = innermost(tree, operators)
    codes = np.where(found == NONE, 0, path.codes[np.maximum(found, 0)] + 1 if calls.rows else 0)
    return Labels(codes.astype(np.int32), ("", *shown)).merged()
