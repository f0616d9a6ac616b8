"""Run a command inside a terminal of a given size, as a person would see it."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_in_terminal(arguments: list[str], columns: int, **environment: str) -> str:
    """What `nsightpy ARGUMENTS` writes to a terminal that is `columns` wide; it must succeed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    path = os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH"))))
    line = [sys.executable, "-m", "nsightpy", *arguments]
    variables = {**kept, "TERM": "xterm-256color", "PYTHONPATH": path, **environment}
    nothing, chunks, running = subprocess.DEVNULL, [], True
    process = subprocess.Popen(
        line, stdin=nothing, stdout=slave, stderr=nothing, cwd=ROOT, env=variables
    )
    while running or select.select([master], [], [], 0.2)[0]:
        # a slave that is closed at once may lose what is on its way
        running = process.poll() is None
        if select.select([master], [], [], 0.2)[0]:
            chunks.append(os.read(master, 65_536))
    os.close(slave)
    os.close(master)
    assert process.returncode == 0, line
    return b"".join(chunks).decode().replace("\r\n", "\n")
