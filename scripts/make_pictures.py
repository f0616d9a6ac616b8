"""Draw the terminal picture of the README from the sample reports.

It needs a headless Chromium (NSIGHTPY_CHROMIUM, or one in PATH), and runs in the repository root.
"""

import base64
import io
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from nsightpy.commands.summarize.command import summarize
from nsightpy.render.text.summary import print_summary
from tests.support.browser import browser

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "summarize.png"
REPORT = "sample_reports/training_4rank"
COLUMNS = 96
CELL_PX, LINE_PX, MARGIN_PX = 8.43, 18, 30
# Background, text, and the eight colours of a terminal.
THEME = TerminalTheme(
    (0x1B, 0x1F, 0x27),
    (0xD8, 0xDE, 0xE9),
    [
        *((0, 0, 0), (224, 108, 117), (134, 192, 108), (229, 192, 123)),
        *((97, 175, 239), (199, 146, 234), (95, 179, 179), (255, 255, 255)),
    ],
)
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #ffffff; }}
pre {{ margin: 12px; padding: 14px 18px; border-radius: 8px; background: {background};
color: {foreground}; font: 14px/18px "DejaVu Sans Mono", monospace; }}
</style><pre>{code}</pre>
<script>document.body.dataset.facts = "{{}}"</script>"""


def main() -> None:
    console = Console(
        file=io.StringIO(), width=COLUMNS, record=True, force_terminal=True, highlight=False
    )
    console.print(f"$ nsightpy summarize {REPORT}", style="cyan")
    print_summary(summarize(REPORT), console)
    lines = console.export_text(clear=False).count("\n")
    page = console.export_html(theme=THEME, code_format=PAGE, inline_styles=True)
    width, height = int(COLUMNS * CELL_PX) + 2 * MARGIN_PX, lines * LINE_PX + 58
    with tempfile.TemporaryDirectory() as folder, browser(width, height) as chromium:
        path = Path(folder, "page.html")
        path.write_text(page, encoding="utf-8")
        chromium.open(path)
        IMAGE.write_bytes(base64.b64decode(chromium.call("Page.captureScreenshot")["data"]))


if __name__ == "__main__":
    main()
