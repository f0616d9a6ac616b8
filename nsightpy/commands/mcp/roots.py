"""Which files agents may read: those in the allowed folders, wherever links lead."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nsightpy.errors import UsageError
from nsightpy.report_sets.opening import find_snapshots
from nsightpy.reports.opening import is_ncu_file, is_system_report

MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Roots:
    """The allowed folders, as their real paths."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, given: Sequence[str | Path]) -> Roots:
        """Raises UsageError for none, or for what is no folder."""
        if not given:
            raise UsageError("give --root DIR: the folder whose reports may be read")
        for each in given:
            if not Path(each).is_dir():
                raise UsageError(f"--root {each}: is no folder")
        return cls(tuple(dict.fromkeys(Path(each).resolve() for each in given)))

    def allowed(self, given: str) -> list[str]:
        """The files and folders behind a path or glob, as real paths.

        A path that is not absolute is looked for in each folder. What lies outside, by name or
        behind a link, is refused before anything is said of it; so is a folder that holds a link
        out of the allowed ones. Raises UsageError.
        """
        if not given or "\0" in given or ".." in Path(given).parts:
            raise self._outside(given)
        path = Path(given)
        candidates = [path] if path.is_absolute() else [root / path for root in self.folders]
        inside = [candidate for candidate in candidates if self.holds(_literal(candidate))]
        if not inside:
            raise self._outside(given)
        real_paths = [real for candidate in inside for real in self._behind(candidate, given)]
        if not real_paths:
            raise UsageError(f"{given}: there is no such file; list_reports names those there are")
        return list(dict.fromkeys(real_paths))

    def holds(self, path: Path) -> bool:
        """Whether a path is, with all links followed, in an allowed folder."""
        real = path.resolve()
        return any(real.is_relative_to(root) for root in self.folders)

    def reports(self) -> list[Path]:
        """The reports in the allowed folders and below, sorted; none behind links out of them."""
        found = []
        for path in (path for root in self.folders for path in root.rglob("*")):
            with suppress(OSError):
                if path.is_file() and self.holds(path):
                    is_report = is_system_report(path) or is_ncu_file(path) or find_snapshots(path)
                    found += [path] if is_report else []
        return sorted(found)

    def _behind(self, path: Path, given: str) -> list[str]:
        if path.exists():
            matches = [path]
        else:
            matches = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
        for match in matches:
            export = match.resolve().with_suffix(".sqlite")  # may be read instead of a report
            beside = list(match.iterdir()) if match.is_dir() else [match, export]
            if not all(self.holds(each) for each in beside):
                raise self._outside(given)
        return [str(match.resolve()) for match in matches]

    def _outside(self, given: str) -> UsageError:
        folders = ", ".join(map(str, self.folders))
        return UsageError(f"{given}: is not in the allowed folders: {folders}")


def _literal(path: Path) -> Path:
    """The part of a path before what only a glob can mean."""
    if path.exists() or not glob.has_magic(str(path)):
        return path
    parts = list(path.parts)
    first = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])
