"""What lies around a command: closed or full outputs, other encodings, permissions, signals."""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Where a command runs: its folder, the file or folder it is asked about, its own cache."""

    folder: Path
    target: Path
    cache: Path


def nothing(_place: Place) -> None:
    pass


@dataclass(frozen=True)
class Around:
    """Surroundings: what is done before, in the command's process, and while it runs.

    `inside` runs in the child before the command; `after_s` later `during` is called with its pid.
    `silent`: nobody can read what the command says. `codes`: exit codes that are fine here, too.
    """

    name: str = ""
    before: Callable[[Place], object] = nothing
    inside: Callable[[Place], object] = nothing
    during: Callable[[Place, int], object] | None = None
    after_s: float = 0.0
    silent: bool = False
    codes: tuple[int, ...] = ()
    encoding: str = "utf-8"
    changes_files: bool = False


PLAIN = Around()
# The number of capset on x86-64, and the version of its header: linux/capability.h.
_CAPSET = 126
_VERSION_3 = 0x20080522


def _close(descriptor: int, _place: Place) -> None:
    os.close(descriptor)


def _fill(descriptor: int, _place: Place) -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)


def _broken_pipe(_place: Place) -> None:
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.close(writer)
    os.close(reader)


def _without_privileges(_place: Place) -> None:
    """Permissions hold for root, too (Linux: no capabilities)."""
    if os.getuid() == 0:
        header, none = (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
        ctypes.CDLL(None).syscall(_CAPSET, header, none)


def _unreadable(place: Place) -> None:
    for each in [place.target, *sorted(place.target.glob("*"))][:2]:
        each.chmod(0)


def _without_directory(place: Place) -> None:
    gone = place.cache / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


def send(number: int, _place: Place, pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _removed(place: Place, _pid: int) -> None:
    if place.target.is_file():
        place.target.unlink()


def _shortened(place: Place, _pid: int) -> None:
    if place.target.is_file():
        os.truncate(place.target, place.target.stat().st_size // 2)


def _replace(make: Callable[[Path], object], place: Place) -> None:
    if place.target.is_file():
        place.target.unlink()
        make(place.target)


def _limit(limit: int, number: int, _place: Place) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(limit, (number, number))


# No file can grow beyond 4096 bytes, as on a disk that is nearly full.
small_files = partial(_limit, resource.RLIMIT_FSIZE, 4096)
ODD: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "folder": Path.mkdir,
    "empty": Path.touch,
    "one byte": lambda path: path.write_bytes(b"\0"),
}
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
MOMENTS = (0.0, 0.01, 0.05, 0.2, 0.6)
EVERY = (
    *(
        Around(f"{number.name} after {after} s", during=partial(send, number), after_s=after,
               codes=(code, -number))
        for number, code in SIGNALS.items() for after in MOMENTS
    ),
    *(
        Around(f"{act.__name__} after {after} s", during=act, after_s=after, changes_files=True)
        for act in (_removed, _shortened) for after in MOMENTS[:4]
    ),
    *(Around(f"odd file: {name}", before=partial(_replace, make), changes_files=True)
      for name, make in ODD.items()),
    *(Around(name, encoding=name) for name in ("ascii", "latin-1", "cp1252", "utf-16")),
    *(Around(f"{n} is closed", inside=partial(_close, n), silent=n == 2) for n in range(3)),
    *(Around(f"{n} is full", inside=partial(_fill, n), silent=n == 2) for n in (1, 2)),
    Around("stdout is a broken pipe", inside=_broken_pipe),
    Around("unreadable", before=_unreadable, inside=_without_privileges, changes_files=True),
    Around("cache of others", inside=_without_privileges,
           before=lambda place: (place.cache / "cache").mkdir(mode=0o555, exist_ok=True)),
    Around("cache is a file", before=lambda place: (place.cache / "cache").touch()),
    Around("no directory", inside=_without_directory, changes_files=True),
    Around("16 descriptors", inside=partial(_limit, resource.RLIMIT_NOFILE, 16)),
    Around("files of 4096 bytes", inside=small_files),
)  # fmt: skip


def prepare_text(around: Around) -> None:
    """sys.stdout and sys.stderr of the child, in the encoding of its surroundings."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        try:
            os.fstat(descriptor)
            buffering = 1 if name == "stderr" else -1
            stream = open(descriptor, "w", buffering, around.encoding, closefd=False)  # noqa: SIM115
        except OSError:
            stream = None
        setattr(sys, name, stream)
