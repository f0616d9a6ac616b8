"""nsightpy select"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import click

from nsightpy.cli.declared import click_command
from nsightpy.cli.delivery import check_output, deliver, deliver_answer, tell
from nsightpy.cli.options import DeclaredCommand, arguments_of
from nsightpy.commands.select.command import select
from nsightpy.commands.select.plan import SCRIPT_KINDS
from nsightpy.errors import UsageError
from nsightpy.reports.opening import is_nsys_name

APPLICATION = "nsightpy.application"


class WithApplication(DeclaredCommand):
    """A command whose words after the first -- are another program's own command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            index = args.index("--")
            ctx.meta[APPLICATION] = tuple(args[index + 1 :])
            args = args[:index]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- APPLICATION ARGUMENTS...]"]


def run(options: dict[str, Any]) -> None:
    """Choose, and print the table with its commands, or a script of them."""
    application = click.get_current_context().meta.get(APPLICATION, ())
    if options["launcher"] and not options["script"]:
        raise UsageError("--launcher is for --script: lines are run in a rank by hand")
    if options["format_"] != "table" and options["script"]:
        raise UsageError("--script has one form; without it, --format has the commands, too")
    for word in () if application else options["reports"][1:]:
        if not (is_nsys_name(Path(word)) or glob.has_magic(word) or Path(word).exists()):
            raise UsageError(f"{word}: is no report; the application's own command goes after --")
    if not options["script"]:
        check_output(select, options)
    plan = select(options["reports"], **arguments_of(select, options), application=application)
    if not options["script"]:
        deliver_answer(select, plan, options)
        return
    script = plan.script(options["script"], options["launcher"])
    deliver(script.encode("utf-8", "surrogateescape"), options)
    if options["output"] != "-":  # let those run it who may read it
        path = Path(options["output"])
        path.chmod(path.stat().st_mode | (path.stat().st_mode & 0o444) >> 2)
    tell(plan, options)


command = click_command(
    select,
    run,
    WithApplication,
    click.Option(["--script"], type=click.Choice(SCRIPT_KINDS), help="Print a batch script."),
    click.Option(
        ["--launcher"], metavar="TEXT", default="", help="Starts the job in the script: srun -n 8."
    ),
)
