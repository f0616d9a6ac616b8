"""Which launches of Nsight Compute reports are meant: by kernel name, as ncu takes it, or by id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from nsightpy.errors import ReportError, UsageError
from nsightpy.names import brief
from nsightpy.query.options import Option
from nsightpy.query.scope import numbers
from nsightpy.results.rooflines import RooflineLaunch

KernelName: TypeAlias = Annotated[
    str | None,
    Option(
        "Only launches of this kernel, as ncu takes names; * stands for anything.",
        "NAME|regex:RE",
        typed="--kernel-name -k",
    ),
]
LaunchId: TypeAlias = Annotated[
    str | int | None, Option("Only launches with these ids: 3,7-9.", "SPEC", typed="--id")
]
REGEX = "regex:"
_MOST, _WIDTH = 12, 60


def of_kernels(
    launches: Sequence[RooflineLaunch], pattern: str | None, spec: str | int | None
) -> list[RooflineLaunch]:
    """The launches of kernels of that name whose id is on the list; None for all.

    A name is the kernel's function, demangled or mangled name in full, with * for anything;
    regex:EXPRESSION is searched in them. Raises UsageError, and ReportError where none is left.
    """
    ids = numbers(spec, "id")
    if pattern is None and ids is None:
        return list(launches)
    fits = _expression(pattern)
    kept = [
        launch
        for launch in launches
        if (ids is None or launch.launch in ids)
        and any(
            fits.search(name)
            for name in (launch.base_name, launch.name, launch.mangled_name)
            if name
        )
    ]
    if launches and not kept:
        asked = f"of name {pattern!r}" if ids is None else f"with id {spec}"
        names = dict.fromkeys(brief(launch.base_name or launch.name, _WIDTH) for launch in launches)
        more = f", and {len(names) - _MOST} more" if len(names) > _MOST else ""
        raise ReportError(
            launches[0].report,
            f"holds no kernel {asked}",
            f"it has {', '.join(list(names)[:_MOST])}{more}; ids are in the table.",
        )
    return kept


def _expression(pattern: str | None) -> re.Pattern[str]:
    if pattern is None:
        return re.compile("")
    if not pattern.startswith(REGEX):
        return re.compile(rf"\A{'.*'.join(map(re.escape, pattern.split('*')))}\Z")
    try:
        return re.compile(pattern.removeprefix(REGEX))
    except re.error as error:
        raise UsageError(f"{pattern!r} is no regular expression: {error}") from error
