"""The documentation is true: its commands exist, its pages match the code."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import make_docs
import pytest
from packaging.requirements import Requirement

from nsightpy.analysis.findings import engine
from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.rule import Rule
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.command_table import COMMANDS, Listed
from tests.support.reports import ask

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def test_frames_page_matches_the_schemas() -> None:
    page = (ROOT / "docs" / "frames.md").read_text(encoding="utf-8")
    assert page == make_docs.frames_page(), "run scripts/make_docs.py"


def test_quick_start_is_two_bash_blocks() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Quick start\n(.*?)(?=^## )", readme, re.DOTALL | re.MULTILINE)
    assert section is not None
    blocks = re.findall(r"^```bash\n(.*?)^```", section[1], re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    assert "nsightpy summarize sample_reports/" in blocks[0]
    test_command = blocks[1].strip().splitlines()[-1]
    assert test_command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_documented_commands_exist() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`nsightpy ([a-z-]+)", text):
            assert name in COMMANDS, f"{page.name} names {name}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"| `{name}" not in readme] == []


def test_links_and_pictures_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_every_dependency_has_a_bound_and_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    reasons = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    extras = [r for wanted in project["optional-dependencies"].values() for r in wanted]
    for text in [*project["dependencies"], *extras]:
        requirement = Requirement(text)
        bounds = {s.operator: s.version for s in requirement.specifier}
        assert ">=" in bounds, text
        assert requirement.name in reasons, text
        assert bounds[">="] in reasons, text


@pytest.mark.slow
def test_python_example_of_the_readme_runs(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    for example in re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE):
        exec(compile(example, "README.md", "exec"), {})


def test_the_rule_of_the_contributors_page_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, example = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    monkeypatch.setattr(engine, "RULES", [eval(example, {"Rule": Rule})])
    budget = TimeBudget(0, 100, 100, 30, 70, 0, 0, 70, 0, 0)
    (finding, _) = engine.judge(JobEvidence([Evidence(3, 0, budget)]))
    assert finding.text.startswith("rank 3 waits for the network for 70.0 ns, 70 % of rank 3's")
    assert (finding.severity, finding.recoverable_ns) == ("warning", 70)


def test_the_command_of_the_contributors_page_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example, _ = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(example.splitlines()) < 60
    module = ModuleType("nsightpy.commands.registers")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "registers", Listed("registers", "GPU time by registers."))
    exec(compile(example, "CONTRIBUTING.md", "exec"), module.__dict__)
    table = module.registers(ROOT / "sample_reports" / "training_4rank", jobs=1)
    times = [row["total_ns"] for row in table.records()]
    assert times == sorted(times, reverse=True)
    assert len(times) > 1
    assert ask("registers", "--schema").json["title"] == "nsightpy registers"
