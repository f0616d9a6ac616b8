"""What the tests of pages share: the page of the sample job, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, browser
from tests.support.reports import ROOT, ask


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("page") / "training.html"
    ask("timeline", ROOT / "sample_reports" / "training_4rank", "-o", page)
    return page


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser(1280, 900) as found:
        yield found
