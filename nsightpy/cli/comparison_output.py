"""What becomes of a comparison: the screen, a file of any format, a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nsightpy.cli.options import deliver, deliver_text, show, tell
from nsightpy.results.comparison import Comparison
from nsightpy.results.run_summary import RunSummary


def deliver_comparison(result: Comparison, options: dict[str, Any]) -> None:
    """Print or write a comparison in the wanted format; notes go to stderr for people."""
    from nsightpy.render.comparison.document import comparison_json
    from nsightpy.render.comparison.junit import comparison_junit
    from nsightpy.render.comparison.markdown import comparison_markdown
    from nsightpy.render.plots.drawing import is_picture

    if is_picture(options["output"]):
        from nsightpy.render.comparison.plot import comparison_figure
        from nsightpy.render.plots.drawing import picture_bytes

        deliver(picture_bytes(comparison_figure(result), options["output"]), options)
    elif options["format_"] == "table":
        from nsightpy.render.comparison.text import print_comparison

        deliver_text(lambda out: print_comparison(result, out, options["top"]), options)
    elif options["format_"] == "markdown":
        deliver(comparison_markdown(result, options["top"]), options)
    elif options["format_"] == "json":
        deliver(comparison_json(result), options)
    elif options["format_"] == "junit":
        deliver(comparison_junit(result), options)
    else:
        show(result, options)
        return
    tell(result, options)


def save_baseline(runs: tuple[RunSummary, ...], path: str, *, force: bool) -> None:
    """Write the runs as a baseline; never over an existing file without `force`."""
    from nsightpy.render.comparison.baseline import baseline_bytes
    from nsightpy.render.output import output_file

    with output_file(Path(path), force=force) as file:
        file.write(baseline_bytes(runs))
