"""nsightpy compare"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from nsightpy.cli.delivery import deliver, deliver_text, is_picture, say, show, tell
from nsightpy.cli.options import asked, junit_options, top_option
from nsightpy.cli.sides import SIDES, WithSides
from nsightpy.results.comparison import Comparison
from nsightpy.units import counted

GATE_FAILED = 3


@click.command("compare", cls=WithSides)
@click.argument("reports", metavar="RUN...", nargs=-1, required=True)
@junit_options
@click.option("--gate", metavar="SHARE", help="What a change must pass to be one: 3%.  [1%]")
@click.option("--gate-ns", metavar="TIME", help="And in time: 50us.  [1us]")
@click.option("--gate-on", metavar="NAME", help="Gate a kernel, range or collective.  [step]")
@click.option("--strict", is_flag=True, help="A gate that cannot tell fails, too.")
@click.option("--noise", is_flag=True, help="Runs of one thing: the floor for a gate.")
@click.option("--baseline", metavar="FILE", help="The side before, as --save-baseline kept it.")
@click.option("--save-baseline", metavar="FILE", help="Keep the last side's runs in a new file.")
@top_option
@click.pass_context
def command(context: click.Context, /, **options: Any) -> int:
    """Is it slower, by how much, because of what, and can I believe it?

    Each REPORT is a run: a report, or a folder as one rank set; four runs a side or more. With
    --gate, --gate-ns or --gate-on the exit code is 3 where the step is slower beyond both limits
    and its interval. -o takes .md for a pull request, .xml for CI (JUnit), .csv, .json, and draws
    .png, .svg, .pdf.

    \b
      nsightpy compare before.nsys-rep after.nsys-rep
      nsightpy compare --gate 3% before/run* -- after/run*
      nsightpy compare --save-baseline base.json run*
      nsightpy compare --baseline base.json --gate 3% run*
      nsightpy compare --noise run*
    """
    from nsightpy.commands.compare.command import compare

    first, second = _sides(context.meta.get(SIDES), options)
    sides = {"before": first or None, "after": second or None}
    comparison = asked(compare, options, **sides, overwrite=options["force"])
    if options["save_baseline"]:
        kept = counted(len(comparison.after.runs), "run is kept", "runs are kept")
        say(f"{kept} in {options['save_baseline']}", options)
    if comparison.rows:
        deliver_comparison(comparison, options)
    else:
        tell(comparison, options)
    return GATE_FAILED if comparison.gate is not None and comparison.gate.failed else 0


def _sides(
    divided: tuple[Sequence[str], Sequence[str]] | None, options: dict[str, Any]
) -> tuple[Sequence[str], Sequence[str]]:
    """The reports before and after; two without -- are a side each. Raises UsageError."""
    from nsightpy.errors import UsageError

    given = options["reports"]
    if any(options[name] for name in ("noise", "baseline", "save_baseline")):
        return divided or (given, ())
    if divided is None and len(given) == 2:
        divided = (given[:1], given[1:])
    if divided is None or not all(divided):
        raise UsageError(
            "which runs are before and which after? nsightpy compare BEFORE... -- AFTER..."
        )
    return divided


def deliver_comparison(result: Comparison, options: dict[str, Any]) -> None:
    """Print or write a comparison in the wanted format; notes go to stderr for people."""
    from nsightpy.output.formats import to_json
    from nsightpy.render.comparison.junit import comparison_junit
    from nsightpy.render.comparison.markdown import comparison_markdown

    top = sys.maxsize if options["top"] == 0 else options["top"]
    if is_picture(options["output"]):
        from nsightpy.render.comparison.plot import comparison_figure
        from nsightpy.render.plots.drawing import picture_bytes

        deliver(picture_bytes(comparison_figure(result), options["output"]), options)
    elif options["format_"] == "table":
        from nsightpy.render.comparison.text import print_comparison

        deliver_text(lambda out: print_comparison(result, out, top), options)
    elif options["format_"] == "markdown":
        deliver(comparison_markdown(result, top), options)
    elif options["format_"] == "json":
        deliver(to_json(result), options)
    elif options["format_"] == "junit":
        deliver(comparison_junit(result), options)
    else:
        show(_first(result, top), options)
        return
    tell(result, options)


def _first(result: Comparison, top: int | None) -> Comparison:
    """The step, its parts, and the first rows of what ran."""
    sections = (result.kernels, result.collectives, result.ranges)
    shown = (result.step, *result.parts, *(row for rows in sections for row in rows[:top]))
    return replace(result, rows=tuple(quantity.row for quantity in shown))
