"""A simulated training job: its settings, and the reports and the truth that follow from them."""

from dataclasses import dataclass
from pathlib import Path

from simulator.emit import write_reports
from simulator.run import Run, simulate
from simulator.settings import Settings
from simulator.truth import truth


@dataclass(frozen=True)
class TrainingJob(Settings):
    """Settings that can be run."""

    def run(self) -> Run:
        """Simulate the job on the true clock."""
        return simulate(self)

    def write(self, directory: str | Path) -> tuple[list[Path], dict[str, object]]:
        """Simulate, write one report per rank or node, and return their paths and the truth."""
        run = self.run()
        return write_reports(run, Path(directory)), truth(run)
