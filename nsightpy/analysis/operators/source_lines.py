"""Where in a program work was launched: the innermost line of its own code around a call."""

import re
import sys
from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.iterations.vocabulary import Role, role_of
from nsightpy.analysis.memory.allocation_places import LIBRARY, USER, kind_of_file, short_paths
from nsightpy.analysis.nvtx.nesting import PUSH_POP, in_one_domain, innermost, nest
from nsightpy.analysis.operators.device_time import NONE, forward_operators, inherited
from nsightpy.frames import Frame, Ints, Labels

# What a profiler calls a Python function; modules and built-in functions have no line.
_FUNCTION = re.compile(r"(.+)\((\d+)\): (.+)", re.DOTALL)
# Of Python and of what runs kernels for everybody, by paths without their folder of installation.
_OTHERS = sys.stdlib_module_names | {"torch", "triton", "functorch"}


def python_lines(functions: Frame, operators: Frame, calls: Frame) -> Labels:
    """For each call the innermost line around it of code outside torch and Python itself.

    Installed packages count where a call has no other line. A call of the backward pass has the
    line of the forward operator that it belongs to. Empty where there is none. Frames have
    start_ns, end_ns, pid, tid; functions name, operators parent, depth, sequence and direction.
    """
    names = functions.labels("name")
    kinds = names.map(_kind_of_function, np.int64)
    trees = [_nested(functions.take(kinds == kind)) for kind in (USER, LIBRARY)]
    lines = _first_around([(tree, calls) for tree in trees])
    silent = np.flatnonzero(lines == NONE)
    operator = innermost(operators, calls.take(silent))
    of_operators = _backward_lines(trees, operators)
    linked = operator != NONE
    lines[silent[linked]] = of_operators[operator[linked]]
    # file:line function, of each path its end
    parts = [_FUNCTION.fullmatch(name) for name in names.values]
    files = Labels.of(part[1] for part in parts if part)
    short = dict(zip(files.values, short_paths(files), strict=True))
    shown = (f"{short[part[1]]}:{part[2]} {part[3]}" if part else "" for part in parts)
    return Labels((lines + 1).astype(np.int32), ("", *shown))


def range_lines(ranges: Frame, calls: Frame, waited: Frame) -> Labels:
    """For each call the innermost NVTX range (name, style) around it on its thread, or around it on
    that which waited for it (`waited`: the same calls on such threads); empty where there is none.

    Operators of a framework count where a call is in no other range.
    """
    ranges = ranges.take(ranges.labels("style").equals([PUSH_POP]))
    operators = ranges.labels("name").where(lambda name: role_of(name) is Role.OPERATOR)
    trees = [_nested(ranges.take(each)) for each in (~operators, operators)]
    lines = _first_around([(tree, moments) for tree in trees for moments in (calls, waited)])
    return Labels((lines + 1).astype(np.int32), ("", *ranges.labels("name").values))


def _first_around(pairs: Sequence[tuple[Frame, Frame]]) -> Ints:
    """The code of the name of the innermost row of a tree around each of so many moments, of the
    first pair with one; NONE: none."""
    lines = np.full(pairs[0][1].rows, NONE, dtype=np.int64)
    for tree, moments in pairs:
        silent = np.flatnonzero(lines == NONE)
        holder = innermost(tree, moments.take(silent))
        found = holder != NONE
        lines[silent[found]] = tree.labels("name").codes[holder[found]]
    return lines


def _backward_lines(trees: Sequence[Frame], operators: Frame) -> Ints:
    """For each backward operator, and what it calls, the line around its forward one, else NONE."""
    lines = np.full(operators.rows, NONE, dtype=np.int64)
    forward = forward_operators(operators)
    linked = np.flatnonzero(forward != NONE)
    begun = operators.take(forward[linked])
    lines[linked] = _first_around([(tree, begun) for tree in trees])
    return inherited(lines, operators.ints("parent"), operators.ints("depth"))


def _nested(spans: Frame) -> Frame:
    """Functions or ranges with the row of the one that called each, whatever their domain."""
    return Frame({**spans, "parent": nest(in_one_domain(spans)).parent})


def _kind_of_function(name: str) -> int:
    """Whose code a function is: USER, LIBRARY, or -1 for torch's, Python's and what has no line."""
    match = _FUNCTION.fullmatch(name)
    if match is None or match[1].split("/")[0].removesuffix(".py") in _OTHERS:
        return NONE
    kind = kind_of_file(match[1])
    return kind if kind in (USER, LIBRARY) else NONE
