"""Settings of all tests: property tests have no deadline, what is there at the start stays."""

import atexit
import gc
import os
import shutil
import tempfile

import pytest
from hypothesis import settings

from nsightpy.errors import FAULTS

# A busy machine is no failure.
settings.register_profile("nsightpy", deadline=None)
settings.load_profile("nsightpy")
# A fault of nsightpy fails the test that meets it, in child processes, too.
os.environ[FAULTS] = "raise"
# What is imported is kept as for users, but not in the cache of who runs the tests.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["NSIGHTPY_CACHE_DIR"] = tempfile.mkdtemp(prefix="nsightpy-tests-")
    atexit.register(shutil.rmtree, os.environ["NSIGHTPY_CACHE_DIR"], ignore_errors=True)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Long texts go by the name of their parameter: ids are in the environment of every process."""
    return argname if isinstance(val, str | bytes) and len(val) > 100 else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs real captures or a browser is slow; simulated ones show most of the same."""
    for item in items:
        reasons = {mark.kwargs.get("reason") for mark in item.iter_markers("skipif")}
        if reasons & {"the real reports are not here", "no Chromium here"}:
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the session: the collector need not look at them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
