"""What ranks lose: on links slower than their GPUs have, and to communication beside kernels."""

import numpy as np
import pytest

from nsightpy.analysis.collectives.log import Signature
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.ranks.collective_groups import GroupedCollective
from nsightpy.analysis.ranks.kernels import overlap_costs
from nsightpy.analysis.ranks.links import Link, link_of, slow_groups
from nsightpy.frames import KERNELS, Frame, Labels, constant

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
def test_groups_that_are_not_slow(
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


STEP_NS = 1_000_000


def steps(count: int, beside: int, factor: float, noise: float = 0.02) -> tuple[Frame, Spans]:
    """Steps of one product each; communication covers the first `beside` of them."""
    numbers = np.random.default_rng(1)
    starts = STEP_NS * np.arange(count)
    slower = np.where(np.arange(count) < beside, factor, 1.0)
    durations = (50_000 * slower * numbers.uniform(1 - noise, 1 + noise, count)).astype(np.int64)
    blank = Frame.blank(KERNELS, count)
    times = {"start_ns": starts, "end_ns": starts + durations}
    names = {"name": Labels.constant("gemm", count)}
    sizes = {"blocks": constant(108, count), "threads": constant(256, count)}
    return Frame({**blank, **times, **names, **sizes}), Spans.of(0, beside * STEP_NS)


@pytest.mark.parametrize("factor", [1.2, 1.5, 8.0])
def test_factor_and_excess(factor: float) -> None:
    (cost,) = overlap_costs(*steps(60, 20, factor))
    # the first has no kernel before it: it is a variant of its own
    assert (cost.alone, cost.beside) == (40, 19)
    assert cost.beside_med_ns / cost.alone_med_ns == pytest.approx(factor, rel=0.05)
    assert cost.excess_ns == pytest.approx(19 * 50_000 * (factor - 1), rel=0.05)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (steps(60, 20, 1.0), "no slower"),
        (steps(60, 20, 1.05, noise=0.3), "slower by less than the launches differ"),
        (steps(60, 4, 2.0), "too few beside communication"),
        (steps(24, 20, 2.0), "too few alone"),
        (steps(60, 0, 1.0), "nothing beside communication"),
    ],
)
def test_kernels_that_lose_nothing_are_not_listed(job: tuple[Frame, Spans], why: str) -> None:
    assert overlap_costs(*job) == [], why


def test_the_kernel_before_tells_products_apart() -> None:
    """Forward products run alone, backward ones of the same name take longer in themselves."""
    frame, communication = steps(80, 40, 1.5)
    order = np.arange(80)
    codes = np.where(order % 2, 0, np.where(order < 40, 1, 2)).astype(np.int32)
    named = Frame({**frame, "name": Labels(codes, ("gemm", "backward", "forward"))})
    assert overlap_costs(named, communication) == []
