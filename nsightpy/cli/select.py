"""nsightpy select"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsightpy.cli.options import (
    common_of,
    common_options,
    deliver,
    deliver_text,
    say,
    show,
    tell,
    top_option,
)

if TYPE_CHECKING:
    from nsightpy.verbs.selection.plan import Plan

APPLICATION = "nsightpy.application"
IN_THE_COMMANDS = ("mangled", "launch_count", "command")


class WithApplication(click.Command):
    """A command whose words after the first -- are another program's own command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[APPLICATION] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- APPLICATION ARGUMENTS...]"]


_CHOICE = (
    click.option(
        "--coverage",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.8,
        show_default=True,
        help="Choose the fewest kernels with this share of the GPU time.",
    ),
    click.option(
        "--communication",
        metavar="RE",
        multiple=True,
        help="Kernels whose name matches count as communication, too; may be repeated.",
    ),
    click.option("--with-communication", is_flag=True, help="Choose communication kernels, too."),
    click.option("--outlier", is_flag=True, help="Add the slowest launch of each kernel."),
    click.option("--whole", is_flag=True, help="Weigh warm-up, too, not the steady state only."),
    click.option(
        "--warm-up",
        metavar="N",
        type=click.IntRange(min=0),
        default=1,
        show_default=True,
        help="First launches of a variant that are not representative.",
    ),
    click.option(
        "--budget", metavar="N", type=click.IntRange(min=1), help="At most N passes over kernels."
    ),
    click.option(
        "--passes", metavar="N", type=click.IntRange(min=1), help="Passes that one launch takes."
    ),
    click.option("--profile-rank", metavar="SPEC", help="Profile in these ranks only."),
)
_NCU = (
    click.option("--set", "metric_set", metavar="NAME", help="Set of sections.  [roofline]"),
    click.option("--section", "sections", metavar="NAME", multiple=True, help="More sections."),
    click.option("--metrics", metavar="LIST", default="", help="Metrics, as ncu takes them."),
    click.option(
        "--form",
        type=click.Choice(["auto", "mangled", "function", "demangled"]),
        default="auto",
        show_default=True,
        help="How kernels are named; auto takes the first that the capture has.",
    ),
    click.option("--one-run", is_flag=True, help="One run of the application for all kernels."),
    click.option("--ncu-output", metavar="NAME", default="ncu", help="How reports begin.  [ncu]"),
    click.option("--ncu-force", is_flag=True, help="Let ncu overwrite its reports."),
    click.option("--rank-variable", metavar="VAR", help="Goes into reports' names as %q{VAR}."),
    click.option("--kill", is_flag=True, help="End the application after the last launch."),
    click.option(
        "--capture-range",
        type=click.Choice(["auto", "none", "cudaProfilerApi"]),
        default="auto",
        show_default=True,
        help="What began the nsys capture: ncu counts launches from there; auto asks the report.",
    ),
    click.option("--ncu-option", "extra", metavar="WORD", multiple=True, help="More for ncu."),
)
_FORM = (
    click.option("--lines", is_flag=True, help="Print only the commands, one per line."),
    click.option(
        "--script",
        metavar="KIND",
        type=click.Choice(["slurm", "mpi", "torchrun", "plain"]),
        help="Print a batch script: slurm, mpi (PBS, PALS), torchrun, plain.",
    ),
    click.option("--launcher", metavar="TEXT", default="", help="Starts the job in the script."),
    click.option("--run", is_flag=True, help="Run the commands here, now."),
    click.option(
        "--csv", is_flag=True, help="With --run: write no reports, show what was measured."
    ),
)


def options_of_select(function: Any) -> Any:
    """All options of this command, in the order of the help."""
    for option in reversed((*_CHOICE, *_NCU, *_FORM)):
        function = option(function)
    return function


@click.command("select", cls=WithApplication)
@common_options
@top_option
@options_of_select
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Choose the kernels worth measuring with ncu, and print the ncu commands for them.

    The fewest kernel variants (name, grid, block, shared memory) that cover 80 % of the GPU time
    of all REPORTs, each measured by one typical launch. Words after -- are the application's own
    command.
    """
    from nsightpy.errors import UsageError

    application = context.meta.get(APPLICATION, ())
    if options["run"] and not application:
        raise UsageError("--run needs the application's own command after --")
    if options["csv"] and not options["run"]:
        raise UsageError("--csv is for --run; without it, --format csv prints the table")
    if sum(map(bool, (options["run"], options["script"], options["lines"]))) > 1:
        raise UsageError("--run, --script and --lines exclude each other")
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
    elif options["format_"] == "json":
        deliver(as_json(plan), options)
    else:
        show(plan, options)


def planned(options: dict[str, Any], application: tuple[str, ...]) -> Plan:
    """The plan for the command line's options."""
    from nsightpy.verbs.select import select

    taken = [
        *("coverage", "top", "sections", "communication", "with_communication", "outlier"),
        *("warm_up", "whole", "budget", "passes", "profile_rank", "metric_set", "form", "one_run"),
        *("rank_variable", "kill", "capture_range", "extra"),
    ]
    return select(
        options["reports"],
        **{name: options[name] for name in taken},
        metrics=[name for name in options["metrics"].split(",") if name],
        output=options["ncu_output"],
        overwrite=options["ncu_force"],
        application=application,
        **common_of(options),
    )


def printed(plan: Plan, out: Any) -> None:
    """The table for people, and below it the commands, whole: they hold the mangled names."""
    from nsightpy.render.terminal import print_table
    from nsightpy.results import Table

    shown = [n for n, field in enumerate(plan.fields) if field.name not in IN_THE_COMMANDS]
    rows = tuple(tuple(row[n] for n in shown) for row in plan.rows)
    print_table(Table(plan.command, tuple(plan.fields[n] for n in shown), rows), out)
    out.file.write("".join(f"\n{line}\n" for line in dict.fromkeys(plan.lines())))


def as_json(plan: Plan) -> bytes:
    """The document of every command, and in it the runs with words, ranks and fallbacks."""
    import json

    from nsightpy.render.formats import to_json

    document = {**json.loads(to_json(plan)), "runs": plan.document()}
    return f"{json.dumps(document, indent=2, ensure_ascii=True)}\n".encode()


def executable(path: str) -> None:
    """Let those run a script who may read it."""
    from pathlib import Path

    if path != "-":
        mode = Path(path).stat().st_mode
        Path(path).chmod(mode | (mode & 0o444) >> 2)


def tell_all(plan: Plan, options: dict[str, Any]) -> None:
    """The notes, on stderr."""
    for note in plan.notes:
        say(note, options)


def run(plan: Plan, options: dict[str, Any]) -> None:
    """Run the plan here, in this rank; then what was written, or, with --csv, what was measured."""
    from nsightpy.verbs.selection.run_plan import run_plan

    told = None if options["quiet"] else progress
    tell_all(plan, options)
    if not options["csv"]:
        show(run_plan(plan, told=told), options)
        return
    import tempfile
    from pathlib import Path

    from nsightpy.verbs.headroom import headroom

    with tempfile.TemporaryDirectory(prefix="nsightpy-") as folder:
        made = run_plan(plan, told=told, csv_folder=Path(folder))
        if made.reports:
            joined = headroom(
                options["reports"],
                ncu=made.reports,
                communication=options["communication"],
                whole=options["whole"],
                **common_of(options),
            )
            show(joined, options)


def progress(text: str) -> None:
    """What ncu says, line by line, on stderr."""
    import sys

    from nsightpy.render.escape import printable

    print(printable(text), file=sys.stderr, flush=True)
