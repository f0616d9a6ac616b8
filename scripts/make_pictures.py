"""Draw the pictures of the README from the sample reports.

The terminal pictures need a headless Chromium (NSIGHTPY_CHROMIUM, or `chromium` in PATH).
"""

from __future__ import annotations

import html
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from nsightpy.commands.summarize.command import summarize
from nsightpy.render.text.summary import print_summary

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
COLUMNS = 96
CELL_PX, LINE_PX, MARGIN_PX = 8.43, 18, 30
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #ffffff; }}
pre {{ margin: 12px; padding: 14px 18px; border-radius: 8px; background: #1b1f27; color: #d8dee9;
font: 14px/18px "DejaVu Sans Mono", monospace; }}
</style><pre><span style="color:#8fbc8f">$ {command}</span>
{body}</pre>"""
# The terminal's green, yellow, magenta and cyan.
COLOURS = {
    "color(2)": "#86c06c",
    "color(3)": "#e5c07b",
    "color(5)": "#c792ea",
    "color(6)": "#5fb3b3",
}


def summary_page() -> tuple[str, int]:
    """The summary of the sample job as an HTML page, and how many lines it has."""
    os.chdir(ROOT)
    summary = summarize("sample_reports/training_4rank")
    console = Console(
        file=io.StringIO(), width=COLUMNS, record=True, force_terminal=True, highlight=False
    )
    print_summary(summary, console)
    recorded = console.export_text(styles=True)
    lines = [_line(line) for line in recorded.rstrip("\n").split("\n")]
    command = "nsightpy summarize sample_reports/training_4rank"
    return PAGE.format(command=command, body="\n".join(lines)), len(lines) + 1


def _line(ansi: str) -> str:
    text = Text.from_ansi(ansi)
    parts, place = [], 0
    for span in text.spans:
        parts.append(html.escape(text.plain[place : span.start]))
        parts.append(_styled(text.plain[span.start : span.end], str(span.style)))
        place = span.end
    return "".join(parts) + html.escape(text.plain[place:])


def _styled(plain: str, style: str) -> str:
    rules = [f"color:{code}" for name, code in COLOURS.items() if name in style]
    rules += ["font-weight:bold;color:#ffffff"] if "bold" in style else []
    rules += ["color:#7f8794"] if "dim" in style else []
    return f'<span style="{";".join(rules)}">{html.escape(plain)}</span>'


def screenshot(page: str, target: Path, width: int, height: int) -> None:
    """Let Chromium draw a page into a PNG. Raises CalledProcessError when it cannot."""
    browser = os.environ.get("NSIGHTPY_CHROMIUM") or shutil.which("chromium")
    if browser is None:
        sys.exit("no Chromium found: set NSIGHTPY_CHROMIUM")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "page.html")
        source.write_text(page, encoding="utf-8")
        subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--disable-sync", f"--user-data-dir={folder}/profile",
                f"--window-size={width},{height}", "--force-device-scale-factor=1",
                f"--screenshot={target}", source.as_uri(),
            ],
            check=True,
            capture_output=True,
        )  # fmt: skip


def main() -> None:
    """Write docs/images/summarize.png."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    page, lines = summary_page()
    width = int(COLUMNS * CELL_PX) + 2 * MARGIN_PX
    screenshot(page, IMAGES / "summarize.png", width, lines * LINE_PX + 58)


if __name__ == "__main__":
    main()
