"""The options of nsightpy select, and the words of another program behind them."""

from __future__ import annotations

from typing import Any

import click

from nsightpy.cli.options import communication_option

APPLICATION = "nsightpy.application"


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
        help="Choose the fewest kernels with this share of the GPU time.  [0.8, 25 at most]",
    ),
    communication_option,
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
