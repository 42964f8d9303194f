"""Takes the configuration, the data and the shell of whoever runs the tests out of every test."""

import gc
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from tests.scenes.command import inspector as inspector
from tests.scenes.command import run_cli as run_cli
from tests.scenes.loopback import fake as fake
from tests.scenes.rows import SHARE, SHARES

settings.load_profile("ci")
"""The same examples in every run, and no deadlines. `pytest --hypothesis-profile=default` looks for new ones."""


def pytest_report_header() -> str:
    """Names the share of the sweeps that this run tries."""
    share = f"share {SHARE} of {SHARES} (SWEEPS={SHARE} tries it again, SWEEPS=all tries all)" if SHARE else "all"
    return f"sweeps: {share}"


def pytest_configure() -> None:
    """What a shell may have set for its programs holds neither for the tests nor for the programs that they start.

    A shell that starts the tests behind itself lets them ignore interrupts. One that forbids compiled modules would let
    each of hundreds of programs compile the project again: the tests of commands then take twice their time.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The collected tests are never garbage: the collector need not look through them in each process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)  # else the tests of the app spend an eighth of their time in the collector
        gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker tells of a test that passed once, with the time of all its phases, and not after each of them: half of
    the messages between the processes."""
    if not hasattr(item.config, "workerinput"):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if len(reports) == 3 and all(report.passed for report in reports):
        reports[1].duration = sum(report.duration for report in reports)
        reports = reports[1:2]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


folders: Counter[str] = Counter()
"""How many folders each name of a test has, without its digits at the end."""


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own, numbered by a count. Pytest would look through the folders of all tests for a number
    that is free, and make a link to the last of each name."""
    name = re.sub(r"\W", "_", request.node.name)[:30].rstrip("0123456789")
    folders[name] += 1
    return tmp_path_factory.mktemp(f"{name}{folders[name] - 1}", numbered=False)


@pytest.fixture(scope="session", autouse=True)
def _nobody_at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No configuration, and a data folder of its own, for this process and those that it starts."""
    data = tmp_path_factory.mktemp("data")
    before = {name: value for name, value in os.environ.items() if name.startswith("LOOP_INSPECTOR_")}
    for name in before:
        if name != "LOOP_INSPECTOR_MODEL_URL":  # where the tests against a real model find it
            del os.environ[name]
    os.environ["LOOP_INSPECTOR_CONFIG"] = ""
    os.environ["LOOP_INSPECTOR_DATA"] = str(data)
    os.environ["LOOP_INSPECTOR_CACHE"] = ""
    yield data
    for name in ("LOOP_INSPECTOR_CONFIG", "LOOP_INSPECTOR_DATA", "LOOP_INSPECTOR_CACHE"):
        del os.environ[name]
    os.environ.update(before)
