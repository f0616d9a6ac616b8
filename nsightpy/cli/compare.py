"""nsightpy compare"""

from __future__ import annotations

from typing import Any

from nsightpy.cli.declared import click_command
from nsightpy.cli.delivery import check_output, deliver_answer, say, tell
from nsightpy.cli.options import arguments_of
from nsightpy.commands.compare.command import compare
from nsightpy.errors import UsageError
from nsightpy.units import counted

GATE_FAILED = 3


def run(options: dict[str, Any]) -> int:
    """Compare, deliver, and fail where the gate does."""
    check_output(compare, options)
    given = arguments_of(compare, options)
    result = compare(*_sides(options), **given, overwrite=options["force"])
    if options["save_baseline"]:
        kept = counted(len(result.after.runs), "run is kept", "runs are kept")
        say(f"{kept} in {options['save_baseline']}", options)
    if result.rows:
        deliver_answer(compare, result, options)
    else:
        tell(result, options)
    return GATE_FAILED if result.gate is not None and result.gate.failed else 0


def _sides(options: dict[str, Any]) -> tuple[Any, Any]:
    """The reports before and after; two without -- are a side each. Raises UsageError."""
    given, before = options["reports"], options.get("before")
    if any(options[name] for name in ("noise", "baseline", "save_baseline")):
        return (given, ()) if before is None else (before, given)
    if before is None and len(given) == 2:
        return given[:1], given[1:]
    if not (before and given):
        raise UsageError(
            "which runs are before and which after? nsightpy compare BEFORE... -- AFTER..."
        )
    return before, given


command = click_command(compare, run)
