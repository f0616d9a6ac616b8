"""nsightpy select"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.delivery import deliver, deliver_text, show, tell
from nsightpy.cli.options import asked, common_options, top_option
from nsightpy.cli.select_options import APPLICATION, WithApplication, options_of_select

if TYPE_CHECKING:
    from nsightpy.commands.select.plan import Plan

IN_THE_COMMANDS = ("mangled", "launch_count", "command")


@click.command("select", cls=WithApplication)
@common_options
@top_option
@options_of_select
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Choose the kernels worth measuring with ncu, and print the ncu commands for them.

    The fewest kernel variants (name, grid, block, shared memory) that cover 80 % of the GPU time
    of all REPORTs, each measured by one typical launch. Words after -- are the application's own
    command. Nothing is run without --run:

    \b
      nsightpy select train.sqlite -- python train.py
      nsightpy select job/ --script slurm -o ncu.sbatch -- python train.py
    """
    from nsightpy.errors import UsageError

    application = context.meta.get(APPLICATION, ())
    if options["run"] and not application:
        raise UsageError("--run needs the application's own command after --")
    if options["csv"] and not options["run"]:
        raise UsageError("--csv is for --run; without it, --format csv prints the table")
    if options["launcher"] and not options["script"]:
        raise UsageError("--launcher is for --script: lines are run in a rank by hand")
    if sum(map(bool, (options["run"], options["script"], options["lines"]))) > 1:
        raise UsageError("--run, --script and --lines exclude each other")
    if options["format_"] != "table" and (options["script"] or options["lines"]):
        form = "--script" if options["script"] else "--lines"
        raise UsageError(
            f"{form} has one form; without it, --format {options['format_']} has the commands, too"
        )
    if not application:
        refuse_application(options["reports"])
    plan = planned(options, application)
    if options["run"]:
        run(plan, options)
    elif options["script"]:
        text = plan.script(options["script"], options["launcher"])
        deliver(text.encode("utf-8", "surrogateescape"), options)
        executable(options["output"])
        tell_all(plan, options)
    elif options["lines"]:
        text = "".join(f"{line}\n" for line in plan.lines())
        deliver(text.encode("utf-8", "surrogateescape"), options)
        tell_all(plan, options)
    elif options["format_"] == "table":
        deliver_text(lambda out: printed(plan, out), options)
        tell(plan, options)
    else:
        show(plan, options)


def refuse_application(words: tuple[str, ...]) -> None:
    """Raise UsageError where a word behind the reports can only be the application's command."""
    import glob
    from pathlib import Path

    from nsightpy.errors import UsageError
    from nsightpy.report_sets.report_files import is_nsys_name

    for word in words[1:]:
        path = Path(word)
        is_named_so = is_nsys_name(path) or glob.has_magic(word)
        if not (is_named_so or path.exists()):
            raise UsageError(f"{word}: is no report; the application's own command goes after --")


def planned(options: dict[str, Any], application: tuple[str, ...]) -> Plan:
    """The plan for the command line's options."""
    from nsightpy.commands.select.command import select

    return asked(
        select,
        options,
        metrics=[name for name in options["metrics"].split(",") if name],
        output=options["ncu_output"],
        overwrite=options["ncu_force"],
        application=application,
    )


def printed(plan: Plan, out: Any) -> None:
    """The table for people, and below it the commands, whole: they hold the mangled names."""
    from nsightpy.render.text.terminal import print_table
    from nsightpy.results import Table

    shown = [n for n, field in enumerate(plan.fields) if field.name not in IN_THE_COMMANDS]
    rows = tuple(tuple(row[n] for n in shown) for row in plan.rows)
    print_table(Table(plan.command, tuple(plan.fields[n] for n in shown), rows), out)
    out.file.write("".join(f"\n{line}\n" for line in dict.fromkeys(plan.lines())))


def executable(path: str) -> None:
    """Let those run a script who may read it."""
    from pathlib import Path

    if path != "-":
        mode = Path(path).stat().st_mode
        Path(path).chmod(mode | (mode & 0o444) >> 2)


def tell_all(plan: Plan, options: dict[str, Any]) -> None:
    """The notes, on stderr."""
    tell(plan, {**options, "format_": "table"})


def run(plan: Plan, options: dict[str, Any]) -> None:
    """Run the plan here, in this rank; then what was written, or, with --csv, what was measured."""
    from nsightpy.commands.select.run_plan import run_plan

    report_progress = None if options["quiet"] else progress
    tell_all(plan, options)
    if not options["csv"]:
        show(run_plan(plan, report_progress=report_progress), options)
        return
    import tempfile
    from pathlib import Path

    from nsightpy.commands.headroom.command import headroom

    with tempfile.TemporaryDirectory(prefix="nsightpy-") as folder:
        made = run_plan(plan, report_progress=report_progress, csv_folder=Path(folder))
        if made.reports:
            joined = asked(headroom, options, ncu=made.reports, top=None)
            show(joined, options)


def progress(text: str) -> None:
    """What ncu says, line by line, on stderr."""
    import sys

    from nsightpy.output.escape import printable

    print(printable(text), file=sys.stderr, flush=True)
