"""NVIDIA's command-line tools: found by their variable, in PATH and the usual install folders; run
to their end, with nothing of them left behind when interrupted."""

import functools
import glob
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nsightpy.errors import ToolNotFoundError

VERSION_TIMEOUT_S = 20.0
_TERMINATE_S = 2.0
_VERSION = re.compile(r"version (\d+)\.(\d+)\.(\d+)(?:\.(\d+))?", re.IGNORECASE)


@dataclass(frozen=True)
class ToolKind:
    """A tool by name: its product, the variable that chooses it and its usual places (globs)."""

    name: str
    product: str
    variable: str
    installs: tuple[str, ...]


_USUAL = ("/usr/local/bin/", "/usr/bin/", "/usr/local/cuda*/bin/")
_NSYS = (
    *(f"{folder}nsys" for folder in _USUAL),
    *(f"/opt/nvidia/nsight-systems{kind}/*/bin/nsys" for kind in ("", "-cli")),
    "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Systems/bin/nsys",
)
_NCU = (
    *(f"{folder}ncu" for folder in _USUAL),
    "/opt/nvidia/nsight-compute/*/ncu",
    "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Compute/ncu",
)
KINDS = {
    "nsys": ToolKind("nsys", "Nsight Systems", "NSIGHTPY_NSYS", _NSYS),
    "ncu": ToolKind("ncu", "Nsight Compute", "NSIGHTPY_NCU", _NCU),
}


@dataclass(frozen=True)
class Tool:
    """A tool that can be run."""

    path: Path
    version: tuple[int, ...]

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))


def find_tool(kind: str, install_globs: Sequence[str] | None = None) -> Tool:
    """The tool that its variable names, else the newest in PATH and the install folders.

    Raises ToolNotFoundError.
    """
    spec = KINDS[kind]
    globs = spec.installs if install_globs is None else tuple(install_globs)
    chosen = os.environ.get(spec.variable, "")
    own = Path(os.path.expanduser(chosen)).absolute()  # noqa: PTH111
    candidates = [own] if chosen else _candidates(spec, os.environ.get("PATH", ""), globs)
    with ThreadPoolExecutor(8) as pool:
        probes = list(pool.map(functools.partial(_probe, spec), candidates))
    if tools := [probe for probe in probes if isinstance(probe, Tool)]:
        return max(tools, key=lambda tool: tool.version)  # the first of equals: that of PATH
    if chosen:
        problem = f"{spec.variable} is set to {chosen!r}, which {probes[0]}"
        advice = f"Set {spec.variable} to the path of {spec.product}'s {spec.name}, or unset it."
        raise ToolNotFoundError(spec.name, problem, advice)
    broken = "".join(f"; {path} {why}" for path, why in zip(candidates, probes, strict=True))
    raise ToolNotFoundError(
        spec.name,
        f"{spec.name} was not found",
        f"Install {spec.product}, or set {spec.variable} to the path of its {spec.name}: it is "
        f"looked for in {', '.join(('PATH', *globs))}{broken}.",
    )


def _candidates(spec: ToolKind, search_path: str, globs: tuple[str, ...]) -> list[Path]:
    """Executables, each once: PATH in its order, then the install folders; never a relative one."""
    folders = [Path(folder) for folder in search_path.split(os.pathsep) if folder]
    paths = [folder / spec.name for folder in folders if folder.is_absolute()]
    paths += [Path(hit) for pattern in globs for hit in sorted(glob.glob(pattern))]  # noqa: PTH207
    unique: dict[str, Path] = {}
    for path in filter(_runnable, paths):
        unique.setdefault(os.path.realpath(path), path)
    return list(unique.values())


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _probe(spec: ToolKind, path: Path) -> Tool | str:
    """The tool with its version, or why it is none."""
    if not _runnable(path):
        return "is not an executable file" if path.exists() else "does not exist"
    try:
        code, output = run_tool([path, "--version"], timeout_s=VERSION_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return "does not answer --version"
    except OSError as error:
        return f"cannot be run: {error.strerror}"
    match = _VERSION.search(output)
    if code == 0 and match and spec.product in output:
        return Tool(path, tuple(int(part) for part in match.groups() if part))
    return f"does not answer --version as {spec.product} does"


def run_tool(command: Sequence[str | Path], timeout_s: float | None = None) -> tuple[int, str]:
    """Run a tool to its end; what it starts may go on and hold on to its output.

    Returns its exit code (negative: killed by that signal) and all that it printed. Raises OSError
    if it cannot start, and TimeoutExpired; any exception kills its process group.
    """
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
        except BaseException:
            _kill_group(process)
            raise
        printed.seek(0)
        return process.returncode, printed.read().decode("utf-8", "replace")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_TERMINATE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
