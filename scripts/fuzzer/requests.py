"""What is asked of a report: every command, in every format, with sensible and absurd options."""

from __future__ import annotations

import random

from nsightpy.command_table import COMMANDS as ALL

# Not about one report of a system: they are asked in ways of their own, or not at all.
OTHERS = ("cache", "export", "roofline", "headroom")
SYSTEM = (*(name for name in ALL if name not in OTHERS), "headroom")
COMMANDS = {
    "nsys": SYSTEM,
    "torch": SYSTEM,
    "ncu": ("roofline", "headroom", "info", "summarize", "compare", "report"),
    "snapshot": ("memory-usage", "info", "summarize", "report"),
}
PICTURES = {
    "memory-usage": (".png", ".svg"),
    "launch-queues": (".svg",),
    "breakdown": (".svg",),
    "utilization": (".svg",),
    "histogram": (".svg",),
    "collectives": (".svg",),
    "timeline": (".html", ".json", ".svg", ".html", ".json", ".html"),
    "iterations": (".svg",),
    "roofline": (".svg", ".png"),
    "headroom": (".svg",),
    "compare": (".svg", ".xml", ".md"),
    "report": (".html",),
}
ALWAYS_FILES = ("timeline", "report")
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


MORE: dict[str, tuple[tuple[str, ...], ...]] = {
    "kernels": (("--by", "rank,device,process,stream,grid"), ("--by", "stream")),
    "trace": (
        *(("--api",), ("--nvtx-ranges",), ("--launches",), ("--top", "5")),
        ("-r", "nvtx_pushpop_trace"),
    ),
    "collectives": (("--by", "pair"), ("--by", "node")),
    "select": (("--script", "slurm"), ("--coverage", "1"), ("--outlier",), ("--lines",)),
    "operators": (("--by", "shape,thread,rank,module"), ("--by", "module")),
    "roofline": (("--by", "variant"), ("--clock", "max"), ("--clock", "9" * 30)),
}


def request(kind: str, rng: random.Random, ceilings: str = "") -> tuple[list[str], str]:
    """A command with options, and the suffix of the file it writes ("" for none)."""
    command = rng.choice(COMMANDS[kind])
    words, suffix = [command], ""
    pictures = PICTURES.get(command, ())
    if pictures and (command in ALWAYS_FILES or rng.random() < 0.4):
        suffix = rng.choice(pictures)
    elif command not in ALWAYS_FILES and rng.random() < 0.5:
        words += ["--format", rng.choice(("csv", "json", "markdown", "parquet"))]
        suffix = ".out" if words[-1] == "parquet" or rng.random() < 0.2 else ""
    if command in MORE and rng.random() < 0.3:
        words += rng.choice(MORE[command])
    if command == "roofline" and ceilings:
        words += ["--ceilings", ceilings]
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        option = rng.choice(list(OPTIONS))
        words += [option, rng.choice(OPTIONS[option])]
    return words, suffix
