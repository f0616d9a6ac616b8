"""Golden outputs: what a command prints, kept beside the tests.

To accept a wanted change: NSIGHTPY_ACCEPT=1 python -m pytest -k golden, then read the difference
before committing it.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "goldens"


def check_golden(name: str, text: str) -> None:
    """Compare a text with its golden file, or accept it when asked to."""
    path = FOLDER / name
    if os.environ.get("NSIGHTPY_ACCEPT"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no golden {name}; NSIGHTPY_ACCEPT=1 makes it"
    assert text == path.read_text(encoding="utf-8"), f"{name} changed"
