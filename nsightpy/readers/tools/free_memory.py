"""How much memory this process can still take."""

from __future__ import annotations

from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Free memory in bytes, as the machine and the control group allow; None where unknown."""
    known = [size for size in (_of_machine(), _of_group()) if size is not None]
    return min(known, default=None)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _of_group() -> int | None:
    """What a batch system or a container leaves; its file caches count as free."""
    try:
        most = int((_GROUP / "memory.max").read_text(encoding="ascii"))
        used = int((_GROUP / "memory.current").read_text(encoding="ascii"))
        lines = (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):
        return None
    return max(0, most - used + cached)
