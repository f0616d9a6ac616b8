"""The commands that do more than answer: a gate of compare may fail, select prints scripts."""

from functools import partial
from typing import Any

import click

from nsightpy.cli.declared import DeclaredCommand, arguments_of, click_command
from nsightpy.cli.delivery import check_output, deliver, deliver_answer, say, tell
from nsightpy.errors import UsageError
from nsightpy.query.command import Command
from nsightpy.units import counted

APPLICATION = "nsightpy.application"
GATE_FAILED = 3


class WithApplication(DeclaredCommand):
    """A command whose words after the first -- are another program's own command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            index = args.index("--")
            ctx.meta[APPLICATION] = tuple(args[index + 1 :])
            args = args[:index]
        return super().parse_args(ctx, args)


def comparing(compare: Command[Any]) -> click.Command:
    """nsightpy compare"""
    return click_command(compare, partial(_compare, compare))


def selecting(select: Command[Any]) -> click.Command:
    """nsightpy select"""
    from nsightpy.commands.select.plan import SCRIPT_KINDS

    kinds = click.Choice(SCRIPT_KINDS)
    return click_command(
        select,
        partial(_select, select),
        WithApplication,
        click.Option(["--script"], type=kinds, help="Print a batch script."),
    )


SPECIAL = {"compare": comparing, "select": selecting}


def _compare(compare: Command[Any], options: dict[str, Any]) -> int:
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


def _select(select: Command[Any], options: dict[str, Any]) -> None:
    """Choose, and print the table with its commands, or a script of them."""
    application = click.get_current_context().meta.get(APPLICATION, ())
    if options["format_"] != "table" and options["script"]:
        raise UsageError("--script has one form; without it, --format has the commands, too")
    if not options["script"]:
        check_output(select, options)
    plan = select(options["reports"], **arguments_of(select, options), application=application)
    if not options["script"]:
        deliver_answer(select, plan, options)
        return
    script = plan.script(options["script"])
    deliver(script.encode("utf-8", "surrogateescape"), options)
    tell(plan, options)
