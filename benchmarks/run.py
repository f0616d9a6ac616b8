"""Measure nsightpy against what users have today, and say whether the targets are met.

python benchmarks/run.py                        # everything; writes benchmarks/RESULTS.md
python benchmarks/run.py --only first,help      # some of it; prints only
python benchmarks/run.py --kernels 20000        # a quick trial on small exports
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError

from harness.measure import Command, measure
from harness.results import judge, page
from harness.suite import BENCHMARKS, ON_REQUEST, Comparison, Suite

KERNELS = 2_000_000
ROUNDS = 3
TARGET_MISSED = 3


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="SECTION,...", help="sections to measure")
    parser.add_argument("--kernels", type=int, default=KERNELS, help="kernels per export")
    parser.add_argument("--repeat", type=int, default=ROUNDS, help="rounds after the warm-up")
    parser.add_argument("--data", type=Path, default=BENCHMARKS / "data", help="exports' folder")
    parser.add_argument("--cpu", action="store_true", help="processor seconds decide")
    parser.add_argument("--output", type=Path, help="write the page here, complete run or not")
    return parser.parse_args(argv)


def chosen(only: str | None, every: list[Comparison]) -> list[Comparison]:
    sections = {comparison.section for comparison in every}
    wanted = {section.strip() for section in only.split(",")} if only else sections - ON_REQUEST
    if unknown := wanted - sections:
        there = ", ".join(sorted(sections))
        raise SystemExit(f"no section {', '.join(unknown)}; there are {there}")
    return [comparison for comparison in every if comparison.section in wanted]


def page_path(arguments: argparse.Namespace) -> Path | None:
    """RESULTS.md holds complete runs at full size only."""
    if arguments.output:
        return Path(arguments.output)
    whole = arguments.only is None and arguments.kernels == KERNELS
    return BENCHMARKS / "RESULTS.md" if whole and arguments.repeat >= ROUNDS else None


def command_line(arguments: argparse.Namespace) -> str:
    """What gives the same page again, on any machine."""
    usual, parts = vars(parse_arguments([])), ["python benchmarks/run.py"]
    for name in ("only", "kernels", "repeat", "cpu"):
        value = getattr(arguments, name)
        if value != usual[name]:
            parts.append(f"--{name}" if value is True else f"--{name} {value}")
    return " ".join(parts)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def set_up(command: Command) -> bool:
    """Make what a command needs; False where that fails (a peer that cannot be installed)."""
    try:
        command.setup()
    except (OSError, CalledProcessError) as failure:
        say(f"NOT MEASURED: {command.name}: {failure}")
        return False
    return True


def main(argv: Sequence[str]) -> int:
    arguments = parse_arguments(argv)
    suite = Suite(arguments.data.resolve(), arguments.kernels)
    picked = chosen(arguments.only, list(suite.comparisons()))
    arguments.data.mkdir(parents=True, exist_ok=True)
    every = {command.name: command for one in picked for command in one.commands}
    commands = [command for command in every.values() if set_up(command)]
    load = os.getloadavg()[0]
    rounds = measure(commands, arguments.repeat, BENCHMARKS.parent, say)
    outcomes = judge(picked, rounds, arguments.cpu)
    for outcome in outcomes:
        print("  ".join(outcome.row()))
    if path := page_path(arguments):
        text = page(command_line(arguments), arguments.kernels, load, outcomes, rounds)
        path.write_text(text, encoding="utf-8")
    if len(outcomes) < len(picked):
        say(f"{len(picked) - len(outcomes)} comparisons were not measured")
        return 1
    return 0 if all(outcome.met for outcome in outcomes) else TARGET_MISSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
