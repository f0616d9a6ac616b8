"""A simulator of Nsight Systems SQLite exports for jobs whose truth is known exactly."""

from simulator.export import Export, Launch, Process
from simulator.presets import PRESETS, TrainingJob
from simulator.run import Run
from simulator.truth import truth

__all__ = ["PRESETS", "Export", "Launch", "Process", "Run", "TrainingJob", "truth"]
