"""Links: what that of a GPU carries within a node and across nodes, and which are slow.

Rates are those of one direction, in GB/s of 10^9 bytes, as NVIDIA's data sheets and architecture
papers give them (P100, V100, A100, H100, Blackwell; PCIe: 16 lanes of the generation, as the PCI
Express base specification counts them). A bridge between two cards may be there or not, so cards
count with their PCIe alone. Between nodes no adapter is faster than the GPU's PCIe.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nsightpy.analysis.ranks.collective_groups import GroupedCollective
from nsightpy.analysis.ranks.thresholds import LARGE_BYTES, SLOW_SHARE

PCIE_3, PCIE_4, PCIE_5 = 16.0, 32.0, 64.0
# A model by its name (of several patterns the first), its NVLink (None: none that is certain) and
# its PCIe.
LINKS: tuple[tuple[str, float | None, float], ...] = (
    (r"\bG?B[123]00\b", 900.0, PCIE_5),
    (r"\bH[128]00\b.* (?:PCIE|NVL)\b", None, PCIE_5),
    (r"\bH800\b", 200.0, PCIE_5),
    (r"\bG?H(?:20|100|200)\b", 450.0, PCIE_5),
    (r"\bA[18]00\b.*\bPCIE", None, PCIE_4),
    (r"\bA800\b", 200.0, PCIE_4),
    (r"\bA100\b", 300.0, PCIE_4),
    (r"\bV100-PCIE", None, PCIE_3),
    (r"\bV100\b", 150.0, PCIE_3),
    (r"\bP100-SXM", 80.0, PCIE_3),
    (r"\bRTX PRO .*Blackwell|\bRTX 50\d\d", None, PCIE_5),
    (r"\bA(?:10G?|16|30|40)\b|\bL(?:4|20|40S?)\b|\bRTX A\d000|\bRTX \d000 Ada", None, PCIE_4),
    (r"\bRTX [34]0\d\d", None, PCIE_4),
    (r"\bP(?:4|40|100)\b|\bT4\b|\bTITAN|\bRTX 20\d\d|\bGTX 1\d\d\d", None, PCIE_3),
)


@dataclass(frozen=True, slots=True)
class Link:
    """What connects the ranks of a group: NVLink or PCIe, and its rate; `measured`: by a test."""

    name: str
    gb_per_s: float
    measured: bool = False


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A group whose large operations reach less than a third of its link's rate.

    `collective` is its fastest large operation; `lost_ns` is what all large ones took beyond the
    time that the link needs for them.
    """

    collective: GroupedCollective
    link: Link
    across: bool
    lost_ns: float


def link_of(gpu: str, across: bool) -> Link | None:
    """The link of a GPU by its model to others of its node, or `across` nodes; None: not known."""
    for pattern, nvlink, pcie in LINKS:
        if re.search(pattern, gpu, re.IGNORECASE):
            return Link("PCIe", pcie) if nvlink is None or across else Link("NVLink", nvlink)
    return None


def slow_groups(
    groups: Sequence[GroupedCollective],
    hosts: Sequence[str],
    gpus: Sequence[str],
    measured: Mapping[bool, float],
) -> tuple[list[SlowLink], set[str]]:
    """The slow groups, the one that loses most first, and the GPUs whose link is unknown.

    `hosts` and `gpus` are by unit; `measured` are rates in GB/s, by whether nodes are crossed.
    They count before what models say. Groups with members of unknown host, of several models, or
    without sizes are left out.
    """
    by_units: dict[tuple[int, ...], list[GroupedCollective]] = defaultdict(list)
    for group in groups:
        if group.busbw_gb_per_s and (group.bytes or 0) >= LARGE_BYTES:
            by_units[group.units].append(group)
    found, unknown = [], set()
    for units, large in by_units.items():
        nodes, models = {hosts[unit] for unit in units}, {gpus[unit] for unit in units}
        whole = all(len(units) == group.ranks for group in large)
        if "" in nodes or len(models) > 1 or not (whole or len(nodes) > 1):
            continue
        across, model = len(nodes) > 1, models.pop()
        rate = measured.get(across)
        link = Link("nccl-tests", rate, True) if rate else link_of(model, across)
        fastest = max(large, key=lambda group: group.busbw_gb_per_s or 0.0)
        if link is None:
            unknown.add(model)
        elif (fastest.busbw_gb_per_s or 0.0) < SLOW_SHARE * link.gb_per_s:
            lost = 0.0
            for group in large:
                transfer, reached = group.transfer_med_ns or 0.0, group.busbw_gb_per_s or 0.0
                lost += group.instances * transfer * (1.0 - reached / link.gb_per_s)
            found.append(SlowLink(fastest, link, across, lost))
    return sorted(found, key=lambda slow: -slow.lost_ns), unknown
