"""What is asked of a report: every command, in every format, with sensible and absurd options."""

import random
from typing import Any

from nsightpy.cli.declared import option_of
from nsightpy.command_table import COMMANDS as ALL
from nsightpy.query.command import Command

# Not about one report of a system: they are asked in ways of their own, or not at all.
OTHERS = ("cache", "export", "mcp", "roofline", "headroom")
SYSTEM = (*(name for name in ALL if name not in OTHERS), "headroom")
COMMANDS = {
    "nsys": SYSTEM,
    "torch": SYSTEM,
    "ncu": ("roofline", "headroom", "info", "summarize", "compare", "report"),
    "snapshot": ("memory-usage", "info", "summarize", "report"),
    "baseline": ("compare",),
}
NUMBERS = ("0", "-1", "1", "1s", "0.001ms", "1e400", "9" * 30, "nan", "1e18", "", "1s2")
OPTIONS: dict[str, tuple[str, ...]] = {
    "--from": NUMBERS,
    "--to": NUMBERS,
    "--rank": ("0", "0-3", "0-99999999999999999999", "x", "-1", "1," * 1000 + "1"),
    "--device": ("0", "0-4000000000", ",", "0-"),
    "--nvtx": ("*", "step", "(" * 200, "[" * 50, "\x1b[0m"),
    "--rank-regex": (r"(\d+)", "(a+)+$", "(", r"(\d{1000000000})", "x" * 10_000),
    "--jobs": ("1", "2"),
    "--top": ("1", "0", "9" * 25),
    "--name": ("base", "mangled", "none"),
    "--iteration": ("steady", "0", "2-5", "-1", "9" * 30, "0-99999999999"),
    "--communication": ("nccl", "(a+)+$", "("),
}
# What commands ask beside these, by the words that several of them know.
WORDS: dict[str, tuple[str, ...]] = {
    "--by": (
        *("stream", "node", "pair", "variant", "cause", "call", "gap", "kernel", "stage", "module"),
        *("replay", "x", "rank,rank", "rank,device,process,stream,grid"),
        "shape,thread,rank,module",
    ),
    "--report": (
        *("nvtx_pushpop_trace", "cuda_gpu_sum", "cuda_gpu_trace", "cuda_api_trace", "nvtx_sum"),
        *("cuda_kern_exec_sum", "osrt_sum", "um_total_sum", "x"),
    ),
    "--of": ("*", "step", "nccl", "(", "\x1b[31m"),
    "--clock": ("max", "9" * 30, "nan"),
    "--gate": ("5%", "-1", "1e9%", "nan%"),
    "--set": ("a%q", "$(id)", "\n"),
}
ANY = ("1", "0", "-1", "9" * 30, "nan", "0.5", "x", "*", "(", "é\u202e", "/nonexistent", "a" * 5000)
# They run or write something, or are asked in ways of their own.
NOT_ASKED = (
    *("--dask", "--save-baseline", "--baseline", "--ncu", "--ceilings", *OPTIONS),
    *("--help", "--output", "--force", "--format", "--verbose", "--quiet", "--no-cache"),
)


def own_options(command: Command[Any], rng: random.Random) -> list[str]:
    """Some of a command's own options, as its command line declares them: none is missed."""
    words: list[str] = []
    for argument in command.own.values():
        option, name = option_of(argument), argument.typed
        if option is None or name in NOT_ASKED or (not option.required and rng.random() > 0.15):
            continue
        if option.is_flag:
            words.append(name)
        elif argument.option is not None and argument.option.choices:
            words += [name, rng.choice([*argument.option.choices, "x"])]
        else:
            words.append(f"{name}={rng.choice(WORDS.get(name, ANY))}")
    return words


def request(kind: str, rng: random.Random) -> tuple[list[str], str]:
    """A command with options, and the suffix of the file it writes ("" for none)."""
    words, suffix = [rng.choice(COMMANDS[kind])], ""
    command: Command[Any] = ALL[words[0]].load()
    written = [*command.files, *((".png", ".svg") if command.picture else ())]
    written += (".xml", ".md") if command.formats else ()
    if command.files or (written and rng.random() < 0.4):
        suffix = rng.choice(written)
    elif rng.random() < 0.5:
        words += ["--format", rng.choice(("csv", "json", "markdown", "parquet"))]
        suffix = ".out" if words[-1] == "parquet" or rng.random() < 0.2 else ""
    words += own_options(command, rng)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        option = rng.choice(list(OPTIONS))
        words += [option, rng.choice(OPTIONS[option])]
    return words, suffix
