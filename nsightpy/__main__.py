"""The program: python -m nsightpy, and the command `nsightpy`."""

import gc
import os


def main() -> None:
    """Run the command line and exit; Ctrl-C ends it with one line, also while modules load."""
    try:
        from nsightpy.cli.main import main as run

        run()
    except KeyboardInterrupt:
        os.write(2, b"nsightpy: interrupted\n")
        os._exit(130)
    finally:
        # Modules are objects by the ten thousand, none of them garbage: not looked for where the
        # process ends, that takes a sixth of a short command's time.
        gc.freeze()


if __name__ == "__main__":
    main()
