"""Bandwidths from the output of nccl-tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightpy.errors import ReportError
from nsightpy.readers.references import read_link_rates
from tests.support.nccl_tests import nccl_tests

LARGE = 16 << 20
# As versions of 2021 print it: other columns, and one process without MPI.
OLD = """\
#   Rank  0 Pid   1320 on  node-a device  0 [0x00] Tesla V100-SXM2-16GB
#   Rank  1 Pid   1320 on  node-a device  1 [0x00] Tesla V100-SXM2-16GB
#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error
    33554432       4194304     float    817.8   20.51   20.51  0e+00    785.1   21.37   21.37  0e+00
"""


def rates_of(folder: Path, *texts: str) -> dict[bool, float]:
    paths = [folder / f"{number}.txt" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return read_link_rates(paths, LARGE)


@pytest.mark.parametrize(
    ("texts", "rates"),
    [
        ([nccl_tests()], {False: 21.4}),
        ([nccl_tests("ab")], {True: 21.4}),
        ([nccl_tests(), nccl_tests("ab", "4.5")], {False: 21.4, True: 4.5}),
        ([nccl_tests(), nccl_tests(busbw="23.0")], {False: 23.0}),
        ([OLD], {False: 21.37}),
        (["".join(f"[1,0]<stdout>:{line}\n" for line in OLD.splitlines())], {False: 21.37}),
        ([], {}),
    ],
)
def test_the_fastest_large_operation(
    texts: list[str], rates: dict[bool, float], tmp_path: Path
) -> None:
    assert rates_of(tmp_path, *texts) == rates


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "is no output of nccl-tests"),
        ("link, 400, GB/s\n", "is no output of nccl-tests"),
        ("\0\xff" * 9, "is no output of nccl-tests"),
        (nccl_tests().replace("67108864", "1048576"), "no bandwidth of an operation of 16 MiB"),
        (nccl_tests(busbw="0.00").replace(" 1.00 ", " 0.00 "), "no bandwidth of an operation"),
        (OLD.replace("817.8", "817.8 1"), "no bandwidth of an operation"),
    ],
)
def test_other_files_are_refused(text: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=wrong) as raised:
        rates_of(tmp_path, text)
    assert "all_reduce_perf" in str(raised.value)
    with pytest.raises(ReportError, match="no such file"):
        read_link_rates([tmp_path / "none.txt"], LARGE)
