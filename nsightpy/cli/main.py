"""The `nsightpy` command: finds the subcommand, and turns every error into one message."""

import difflib
import logging
import os
import shlex
import sys
import warnings
from itertools import pairwise, takewhile
from typing import Any

import click

from nsightpy import __version__
from nsightpy.cli.failures import (
    FAILURES,
    Failure,
    give_up,
    prepare_streams,
)
from nsightpy.command_table import COMMANDS, FORMER, GROUPS
from nsightpy.errors import unforeseen
from nsightpy.readers.tools.signals import signals_raise

# In the context of a command: the reports that are about to be read.
REPORTS = "nsightpy.reports"


class Commands(click.Group):
    """Subcommands, each imported when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{each.name:<{widest}}", each.help) for each in group])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in FORMER:
            ctx.fail(f"{cmd_name} is now: nsightpy {FORMER[cmd_name]}")
        listed = COMMANDS.get(cmd_name)
        if listed is None:
            close = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            if os.path.exists(cmd_name):  # noqa: PTH110
                hint = f" To read it: nsightpy summarize {shlex.quote(cmd_name)}."
            return ctx.fail(f"there is no command {cmd_name!r}.{hint} See nsightpy --help.")
        from nsightpy.cli.declared import click_command
        from nsightpy.cli.special import SPECIAL

        return SPECIAL.get(cmd_name, click_command)(listed.load())

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # click itself would exit with 1
            return _reader_left()
        except SystemExit as left:
            # rich leaves with 1 where a pipe is closed; a signal has a code of its own
            if left.code != 1:
                raise
            return _reader_left()
        except (*FAILURES, click.exceptions.Exit):
            raise
        except Exception as error:
            # the one place for what a report can make a command raise, and nobody foresaw
            logging.getLogger("nsightpy").info("where it happened:", exc_info=error)
            raise unforeseen(ctx.meta.get(REPORTS, ""), error) from error


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", message="nsightpy %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Where the GPU time goes: answers from Nsight Systems, Nsight Compute and PyTorch reports.

    Begin with: nsightpy summarize REPORT
    """
    if context.invoked_subcommand is None:
        widest = max(map(len, GROUPS))
        click.echo(
            "Where GPU time goes, from Nsight Systems, Nsight Compute and PyTorch reports.\n"
            "Begin with: nsightpy summarize REPORT\n"
        )
        for title, group in GROUPS.items():
            click.echo(f"{title:<{widest}} {' '.join(each.name for each in group)}")
        click.echo("nsightpy --help says what each is for, nsightpy COMMAND --help how to ask it.")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 fine, 1 cannot do it, 2 wrong usage, 3 a gate failed."""
    # Columns are written once and read a few times: clearing huge pages for them takes numpy longer
    # than it saves, most of all in virtual machines (13 % of the time of `nvtx`).
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    # Matrices here are small: threads that wait for each other take more time than they save (the
    # clocks of 64 ranks: five times as much on two busy processors).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    prepare_streams()
    # log lines of libraries are not for people who asked for a table
    for library in ("matplotlib", "distributed", "numpy", "PIL", "fontTools", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    with signals_raise():
        code = run(arguments)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = code or 1
    give_up(sys.stdout, sys.stderr)
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        result: Any = cli.main(args=arguments, prog_name="nsightpy", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_left()
    except FAILURES as error:
        failure = Failure.of(error)
        given = sys.argv[1:] if arguments is None else arguments
        own = list(takewhile(lambda word: word != "--", given))  # may be wrong ones
        failure.tell("--format=json" in own or ("--format", "json") in pairwise(own))
        return failure.code
    return result if isinstance(result, int) else 0


def _reader_left() -> int:
    """The reader of a pipe has seen enough: what is still to be written goes nowhere."""
    give_up(sys.stdout)
    return 0
