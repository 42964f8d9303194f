"""The command line, run in the process of a test. No tests here."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Said(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str


class Ended(NamedTuple):
    """How a live command ended."""

    returncode: int
    stdout: str
    stderr: str


Ran = Callable[..., Ended]


def carried_out(monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    """Runs a command line; gives what it exits with."""
    from inspector import cli

    monkeypatch.setattr(sys, "argv", ["inspector", *words])
    with pytest.raises(SystemExit) as ended:
        cli.run()
    return ended.value.code


@pytest.fixture
def inspector(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs a command line in this process, its output no terminal."""

    def run(*words: object, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = carried_out(monkeypatch, *map(str, words))
        return Said(code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Runs `inspector run` in this process."""

    def run(*words: str, environment: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Ended:
        for name, value in (environment or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(cwd)
        monkeypatch.delitem(sys.modules, "my_tools", raising=False)
        importlib.invalidate_caches()
        code = carried_out(monkeypatch, "run", *words)
        return Ended(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run
