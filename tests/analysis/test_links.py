"""The links of GPUs by their models, and groups that are slow for theirs."""

import pytest

from nsightpy.analysis.collectives.log import Signature
from nsightpy.analysis.ranks.collective_groups import GroupedCollective
from nsightpy.analysis.ranks.links import Link, link_of, slow_groups

H100 = "NVIDIA H100 80GB HBM3"


# Models by GB/s over NVLink (0: none that is certain) and over PCIe.
RATES = {
    (900, 64): ("NVIDIA GB200", "NVIDIA B200"),
    (450, 64): (H100, "NVIDIA H20", "NVIDIA GH200 480GB"),
    (200, 64): ("NVIDIA H800",),
    (0, 64): ("NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA GeForce RTX 5090"),
    (300, 32): ("NVIDIA A100-SXM4-80GB",),
    (200, 32): ("NVIDIA A800-SXM4-80GB",),
    (0, 32): (
        *("NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe", "NVIDIA L40S", "NVIDIA A10G"),
        *("NVIDIA GeForce RTX 3090", "NVIDIA RTX 6000 Ada Generation"),
    ),
    (150, 16): ("Tesla V100-SXM2-32GB",),
    (80, 16): ("Tesla P100-SXM2-16GB",),
    (0, 16): ("Tesla V100-PCIE-16GB", "Tesla T4"),
    (0, 0): ("AMD Instinct MI300X", ""),
}


@pytest.mark.parametrize(("nvlink", "pcie"), RATES)
def test_links_by_model(nvlink: int, pcie: int) -> None:
    across = Link("PCIe", pcie) if pcie else None
    for gpu in RATES[nvlink, pcie]:
        assert link_of(gpu, across=True) == across
        assert link_of(gpu, across=False) == (Link("NVLink", nvlink) if nvlink else across)


def all_reduce(transfer_ns: float, size: int = 1 << 26, ranks: int = 2) -> GroupedCollective:
    kind = Signature("AllReduce", "bf16", size)
    units = tuple(range(ranks))
    return GroupedCollective(kind, units, ranks, 10, 2e6, transfer_ns, 0.0, 0, 1.0, ())


def test_what_a_slow_link_costs() -> None:
    """64 MiB in 0.67 ms are 100 GB/s over the bus of two ranks: under a third of NVLink's 450."""
    group = all_reduce(671_088.64)
    ((slow,), _) = slow_groups([group], ["node", "node"], [H100, H100], {})
    assert (slow.link.name, slow.across) == ("NVLink", False)
    assert slow.collective.busbw_gb_per_s == pytest.approx(100.0)
    assert slow.lost_ns == pytest.approx(10 * 671_088.64 * (1 - 100 / 450))


@pytest.mark.parametrize(
    ("groups", "hosts", "gpus", "why"),
    [
        ([all_reduce(400_000.0)], ["a", "a"], [H100] * 2, "168 GB/s are over a third"),
        ([all_reduce(671_088.0)], ["a", "b"], [H100] * 2, "100 GB/s are fast between nodes"),
        ([all_reduce(6e6, 1 << 20)], ["a", "a"], [H100] * 2, "small operations"),
        ([all_reduce(6e6), all_reduce(4e5)], ["a", "a"], [H100] * 2, "another one shows the link"),
        ([all_reduce(6e6)], ["a", ""], [H100] * 2, "unknown hosts"),
        ([all_reduce(6e6)], ["a", "a"], ["MI300X"] * 2, "unknown links"),
        ([all_reduce(6e6)], ["a", "a"], [H100, "Tesla T4"], "two models"),
        ([all_reduce(6e6, -1)], ["a", "a"], [H100] * 2, "unknown sizes"),
    ],
)
def test_silent(
    groups: list[GroupedCollective], hosts: list[str], gpus: list[str], why: str
) -> None:
    found, unknown = slow_groups(groups, hosts, gpus, {})
    assert (found, unknown) == ([], {"MI300X"} if why == "unknown links" else set()), why


@pytest.mark.parametrize(
    ("measured", "hosts", "gpu", "found"),
    [
        ({False: 290.0}, "aa", H100, []),
        ({False: 310.0}, "aa", H100, [310.0]),
        ({False: 310.0}, "aa", "MI300X", [310.0]),
        ({True: 310.0}, "aa", H100, [450.0]),
        ({True: 310.0}, "ab", H100, [310.0]),
    ],
)
def test_what_was_measured_counts_before_the_model(
    measured: dict[bool, float], hosts: str, gpu: str, found: list[float]
) -> None:
    """100 GB/s of the group against what nccl-tests reached between as many nodes."""
    slow, unknown = slow_groups([all_reduce(671_088.64)], list(hosts), [gpu] * 2, measured)
    assert ([group.link.gb_per_s for group in slow], unknown) == (found, set())
