"""The program: python -m nsightpy, and the command `nsightpy`."""

from __future__ import annotations

import gc
import os
import signal

# Importing makes 100,000 objects that all stay: to look for garbage among them took 0.06 s.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Run the command line and exit; Ctrl-C ends it with one line, also while modules load."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        _run()
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        _run()
    except KeyboardInterrupt:
        _leave()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left only lets go of things


def _run() -> None:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    from nsightpy.cli.main import main as run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(*_signal: object) -> None:
    os.write(2, b"nsightpy: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
