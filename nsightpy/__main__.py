"""The program: python -m nsightpy, and the command `nsightpy`."""

import gc
import os
import signal


def main() -> None:
    """Run the command line and exit; Ctrl-C ends it with one line, also while modules load."""
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_ours:
            signal.signal(signal.SIGINT, _leave)
        from nsightpy.cli.main import main as run

        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _leave()
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left only lets go of things
        # Modules are objects by the ten thousand, none of them garbage: not looked for where the
        # process ends, that takes a sixth of a short command's time.
        gc.freeze()


def _leave(*_signal: object) -> None:
    os.write(2, b"nsightpy: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
