"""A simulator of Nsight Systems SQLite exports for jobs whose truth is known exactly."""

from simulator.export import Export, Launch, Process

__all__ = ["Export", "Launch", "Process"]
