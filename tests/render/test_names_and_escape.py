"""Names: made readable without being confused, and harmless wherever they are shown."""

import csv
import html
import io
import re
import time
import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from nsightpy.names import brief, function_name, readable
from nsightpy.output.escape import csv_text, display_width, markdown_text, printable
from nsightpy.render.text.layout import short_names, shorten

properties = settings(max_examples=150)

SGEMM = "ampere_sgemm_128x64_nn"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
GATHER = (
    "void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int, long, "
    "long, long, long, bool)"
)
CUTLASS = "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_nt_align1>(T1::Params)"
CONCATENATE = (
    "void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<"
    "(unsigned int)4>, unsigned int, (int)4, (int)64>(T1 *, at::native::<unnamed>::"
    "CatArrInputTensorMetadata<T1, T2, T4, T5>, T2)"
)
CLOVER = (
    "void clover::par_ranged1d_kernel<initialise_chunk(int, global_variables &)::"
    "[lambda(int) (instance 2)]>(clover::Range1d, T1)"
)
NEGATE = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::neg_kernel_cuda("
    "at::TensorIteratorBase &)::[lambda() (instance 2)]::operator ()() const::[lambda() "
    "(instance {})]::operator ()() const::[lambda(float) (instance 1)], std::array<char *, "
    "(unsigned long)2>>(int, T2, T3)"
)
NEGATE_SHORT = (
    "vectorized_elementwise_kernel<4, neg_kernel_cuda(TensorIteratorBase &)"
    "::lambda2::lambda7::lambda1, array<char *, 2>>"
)
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, (int)10, (bool)0>"
    "(float *, const float *, int)"
)
REAL = (SGEMM, NCCL, GATHER, CUTLASS, CONCATENATE, CLOVER, NEGATE.format(7), SOFTMAX)
NCCL_NAME, GATHER_NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "vectorized_gather_kernel"
NESTED = "void n::k<(A<(2<3)>::value), (4>>(1))>::run<(bool)1>(float)"


@pytest.mark.parametrize(
    ("name", "function", "width", "short"),
    [
        (SGEMM, SGEMM, 5, SGEMM),  # nothing to leave out: for the caller to cut
        (NCCL, NCCL_NAME, 60, NCCL_NAME),
        (NCCL, NCCL_NAME, len(NCCL), NCCL),
        (GATHER, f"at::native::{GATHER_NAME}", 60, f"at::native::{GATHER_NAME}<16, long>"),
        (GATHER, f"at::native::{GATHER_NAME}", 40, f"{GATHER_NAME}<16, long>"),
        (CUTLASS, "cutlass::Kernel2", len(CUTLASS), CUTLASS),
        (CONCATENATE, "at::native::CatArrayBatchedCopy", 60,
         "CatArrayBatchedCopy<OpaqueType<4>, unsigned int, 4, 64>"),
        (CLOVER, "clover::par_ranged1d_kernel", 60,
         "par_ranged1d_kernel<initialise_chunk(int, global_variables &)::lambda2>"),
        (NEGATE.format(7), "at::native::vectorized_elementwise_kernel", 40, NEGATE_SHORT),
        (SOFTMAX, "softmax_warp_forward", 60, "softmax_warp_forward<float, float, float, 10, 0>"),
        ("saxpy(double *, double *, int)", "saxpy", 5, "saxpy"),
        ("k<(1>0)>(int)", "k", 99, "k<(1>0)>(int)"),
        (NESTED, "n::k::run", 99, NESTED),
        ("", "", 9, ""),
    ],
)  # fmt: skip
def test_functions_and_readable_names(name: str, function: str, width: int, short: str) -> None:
    assert (function_name(name), readable(name, width)) == (function, short)


def test_a_name_of_namespaces_alone_is_not_shown_as_nothing() -> None:
    for name in ("foo::bar::", "x::(int)", "(int)(int)", "<unnamed>::", "void a::", "()", "void "):
        assert readable(name, 1).strip()
    assert function_name("<>") == "<>"
    assert readable(NEGATE.format(7), 40) != readable(NEGATE.format(8), 40)


PIECES = (
    "void |(|)|<|>|[lambda(|int|) (instance 1)]|::|a|operator ()() |(int)|<unnamed>|[|]| |,|\x1b"
)
pieces = st.sampled_from(PIECES.split("|"))
hostile = st.lists(pieces, max_size=25).map("".join) | st.text(max_size=40)


@properties
@given(hostile | st.sampled_from(REAL), st.integers(0, 80))
def test_names_never_grow_or_vanish(name: str, width: int) -> None:
    short = readable(name, width)
    assert len(short) <= len(name)
    assert bool(short) == bool(name)
    if len(name) <= width:
        assert short == name
    assert len(function_name(name)) <= len(name)
    assert bool(function_name(name)) == bool(name)


PARTS = ("(", ")", "<", ">", "[lambda(", "[lambda() (instance ", "a::", "(int)", "lambda1::")


@pytest.mark.parametrize("piece", PARTS)
def test_hostile_names_take_time_in_proportion_to_their_length(piece: str) -> None:
    """Here about 0.1 s; what takes quadratic time takes 20 s."""
    name = piece * (200_000 // len(piece))
    began = time.process_time()
    readable(name, 80)
    function_name(name)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("two\nlines\r\tend", r"two\nlines\r\tend"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("evil\u202egnp.exe", r"evil\u202egnp.exe"),
        ("zero\u200bwidth\ufeff\u00ad", r"zero\u200bwidth\ufeff\xad"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("\udc80", r"\udc80"),
        ("µs 層 🚀 é", "µs 層 🚀 é"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_control_or_format_character_passes() -> None:
    # Visible ones that Unicode also calls format characters: Arabic and Kaithi signs, hieroglyphs.
    visible = re.compile(
        "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd-\U000110cd\U00013430-\U0001345f]"
    )
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    every = (c for c in map(chr, range(0x110000)) if unicodedata.category(c) in hidden)
    assert [c for c in every if printable(c) == c and not visible.match(c)] == []
    assert printable("".join(map(chr, range(0x20, 0x7F)))) == "".join(map(chr, range(0x20, 0x7F)))


@properties
@given(st.text(st.characters(), max_size=30))
def test_shown_text_is_one_harmless_line_and_stays_as_it_is(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown == shown.encode().decode()
    assert len(shown.splitlines()) == bool(shown)


@properties
@given(st.text(max_size=30), st.sampled_from(("", *"=+-@")))
def test_csv_cells_survive_a_csv_reader_and_are_no_formulas(text: str, start: str) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow([csv_text(start + text), "next"])
    ((cell, following),) = csv.reader(io.StringIO(written.getvalue(), newline=""))
    assert following == "next"
    shown = printable(start + text)
    formula = len(shown) > 1 and shown.startswith(("=", "+", "-", "@"))
    assert cell == ("'" * formula) + shown


@properties
@given(st.text(max_size=30) | st.sampled_from(("<script>&amp;", "*b* _i_ `c` [l](u) ~s~ #h")))
def test_markdown_cells_can_be_read_back(text: str) -> None:
    cell = markdown_text(text)
    assert not re.search(r"(?<!\\)(\\\\)*\|", cell)
    assert set(cell).isdisjoint("<>\n")
    assert not re.search(r"(?<!\\)[*_`\[\]~#]", cell.replace(r"\\", ""))
    assert html.unescape(re.sub(r"\\([\\|`*_\[\]#~])", r"\1", cell)) == printable(text)


def test_widths_and_shortening() -> None:
    texts = ("", "gemm", "層", "Ａ", "e\u0301", "ไม้", "❤\ufe0f", "…")
    assert list(map(display_width, texts)) == [0, 4, 2, 2, 1, 2, 2, 1]
    cut = {7: "abcd…ij", 10: "abcdefghij", 2: "a…", 1: "…", 0: ""}
    assert {width: shorten("abcdefghij", width) for width in cut} == cut
    assert shorten("層層層層", 5) == "層…"
    assert brief("void ns::kernel<float>(float *)", 13) == "kernel<float>"
    assert brief("void ns::kernel<float>(float *)", 12) == "kernel<f…at>"
    assert brief("plain", 5) == "plain"


@properties
@given(st.text(max_size=30) | st.text("層ab\u0301", max_size=20), st.integers(0, 24))
def test_shortened_text_fits(text: str, width: int) -> None:
    short = shorten(text, width)
    assert display_width(short) <= width
    if display_width(text) <= width:
        assert short == text
    elif width > 1:
        assert short.count("…") == 1 + text.count("…") or "…" in text
        assert text.startswith(short.split("…")[0])


def test_names_that_look_alike_show_where_they_differ() -> None:
    gemm = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_{}_n_tilesize{}_warpgroupsize1x1x1__5x_cublas"
    names = [gemm.format("nt", "256x128"), "triad", gemm.format("tn", "256x128"),
             gemm.format("tn", "128x256"), gemm.format("nt", "256x128")]  # fmt: skip
    assert short_names(names, 28) == [
        "sm90_xmma…nt_n_tilesize256x…",
        "triad",
        "sm90_xmma…tn_n_tilesize256x…",
        "sm90_xmma…tn_n_tilesize128x…",
        "sm90_xmma…nt_n_tilesize256x…",
    ]


@properties
@given(
    st.lists(st.text("ab_<層", max_size=60), max_size=8),
    st.sampled_from(["", "at::native::elementwise_kernel<"]),
    st.integers(0, 40),
)
def test_short_names_fit_and_stay_the_same_for_the_same(
    names: list[str], prefix: str, width: int
) -> None:
    whole = [prefix + name for name in names]
    short = short_names(whole, width)
    assert all(display_width(text) <= width for text in short)
    assert len({*zip(whole, short, strict=True)}) == len(set(whole))
    alone = [shorten(name, width) for name in whole]
    for name, text, usual in zip(whole, short, alone, strict=True):
        if all(other == name for other, same in zip(whole, alone, strict=True) if same == usual):
            assert text == usual
