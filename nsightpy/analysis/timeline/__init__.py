"""Timelines: events on lanes, lanes in columns."""
