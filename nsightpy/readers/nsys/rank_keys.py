"""The variables of launchers that tell a rank: all that is ever read of an environment."""

from __future__ import annotations

import re

# In the order of trust: an inner launcher (mpirun in an srun step) knows better than an outer one.
RANK_KEYS = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "ALPS_APP_PE",
    "SLURM_PROCID",
)
_VARIABLE = re.compile(r'(?:^|[;\x00])([A-Z0-9_]+)="?(\d{1,6})"?(?=[;\x00]|$)')


def rank_variables(text: str) -> dict[str, int]:
    """The rank keys among the variables of an environment, the first of each."""
    values: dict[str, int] = {}
    for key, value in _VARIABLE.findall(text):
        if key in RANK_KEYS:
            values.setdefault(key, int(value))
    return values
