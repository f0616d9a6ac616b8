"""The program: python -m nsightpy, and the command `nsightpy`."""

from __future__ import annotations

import gc
import os
import signal


def main() -> None:
    """Run the command line and exit; Ctrl-C ends it with one line, also while modules load."""
    try:
        _interruptible()
    finally:
        # Modules are objects by the ten thousand, none of them garbage: not looked for where the
        # process ends, that takes a sixth of a short command's time.
        gc.freeze()


def _interruptible() -> None:
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
    from nsightpy.cli.main import main as run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(*_signal: object) -> None:
    os.write(2, b"nsightpy: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
