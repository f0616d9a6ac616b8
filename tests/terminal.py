"""Run a command inside a terminal of a given size, as a person would see it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_in_terminal(arguments: list[str], columns: int, **environment: str) -> str:
    """What `nsightpy ARGUMENTS` writes to a terminal that is `columns` wide."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "nsightpy", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**kept, "TERM": "xterm-256color", **environment},
    )
    os.close(slave)
    chunks = []
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(master)
    assert process.wait() == 0
    return b"".join(chunks).decode().replace("\r\n", "\n")
