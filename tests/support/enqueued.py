"""What a program enqueued, as plain tuples and as the columns of operations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Action(NamedTuple):
    """Something enqueued at a host time on a stream: op, record, or wait for a record."""

    time: int
    kind: str
    stream: int
    number: int  # record made or waited for
    start: int = 0
    end: int = 0
    role: str = ""


def placed(actions: list[Action], first_id: int) -> dict[str, np.ndarray]:
    """The columns of operations, with correlation ids counted from `first_id`."""
    count = len(actions)
    columns = {
        "start_ns": [a.start for a in actions],
        "end_ns": [a.end for a in actions],
        "pid": [1] * count,
        "device": [0] * count,
        "context": [1] * count,
        "stream": [a.stream for a in actions],
        "correlation_id": range(first_id, first_id + count),
    }
    return {name: np.asarray(values, np.int64) for name, values in columns.items()}
