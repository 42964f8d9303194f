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


class Output(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str


class ProcessResult(NamedTuple):
    """How a live command ended."""

    returncode: int
    stdout: str
    stderr: str


RunCli = Callable[..., ProcessResult]


def exit_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    """Runs a command line; gives what it exits with."""
    from inspector import cli

    monkeypatch.setattr(sys, "argv", ["inspector", *words])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # `python -m pytest` is no part of its name
    with pytest.raises(SystemExit) as ended:
        cli.run()
    return ended.value.code


@pytest.fixture
def inspector(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Output]:
    """Runs a command line in this process, its output no terminal."""

    def run(*words: object, stdin: bytes = b"") -> Output:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = exit_of(monkeypatch, *map(str, words))
        return Output(code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def run_cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCli:
    """Runs `inspector run` in this process."""

    def run(*words: str, environment: Mapping[str, str] | None = None, cwd: Path = ROOT) -> ProcessResult:
        for name, value in (environment or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(cwd)
        monkeypatch.delitem(sys.modules, "my_tools", raising=False)
        importlib.invalidate_caches()
        code = exit_of(monkeypatch, "run", *words)
        return ProcessResult(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run
