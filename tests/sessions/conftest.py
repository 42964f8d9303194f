"""Finds the recorded traffic, and reads files that a test writes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of recorded traffic; tests that need it are skipped where it is absent."""
    found = Path(os.environ.get("LOOP_INSPECTOR_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not (found / "har").is_dir():
        pytest.skip("the recorded traffic is not here (set LOOP_INSPECTOR_CORPUS)")
    return found


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., object]:
    """Writes bytes or text to a file and opens it."""
    from inspector.sessions import open_paths

    def read(content: bytes | str, name: str = "file", **options: str) -> object:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return open_paths([str(path)], **options)

    return read
