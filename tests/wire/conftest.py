"""Recorded traffic for the wire tests, read where it lies; tests that need it skip where it is absent."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("LOOP_INSPECTOR_CORPUS") or Path(__file__).resolve().parents[3] / "shared" / "corpus")


@dataclass(frozen=True)
class Exchange:
    """One recorded exchange, beside what an independent reader found in it."""

    expected: dict[str, Any]
    url: str
    request: dict[str, Any]
    status: int | None
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def id(self) -> str:
        return str(self.expected["id"])

    @property
    def api(self) -> str:
        return str(self.expected["api"])

    @property
    def is_reconstructed(self) -> bool:
        """Framing or fields were added afterwards, or somebody wrote it: not a provider's bytes."""
        made = ("sdk_recording", "body_fixture_stream_reframed")
        return self.expected["provenance"] in made or "suspect_authored" in self.expected["flags"]


@cache
def _har(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((ROOT / "har" / name).read_text("utf-8"))["log"]["entries"]
    return entries


def _exchange(row: dict[str, Any]) -> Exchange:
    entry = _har(row["har"])[row["entry"]]
    content = entry["response"]["content"]
    text = content.get("text", "")
    sent = entry["request"].get("postData", {}).get("text") or "{}"
    try:
        request = json.loads(sent)
    except ValueError:
        request = {}
    return Exchange(
        expected=row,
        url=entry["request"]["url"],
        request=request if isinstance(request, dict) else {},
        status=entry["response"]["status"] or None,
        headers=[(header["name"], header["value"]) for header in entry["response"]["headers"]],
        body=base64.b64decode(text) if content.get("encoding") == "base64" else text.encode("utf-8", "surrogatepass"),
    )


@cache
def _exchanges() -> list[Exchange]:
    with (ROOT / "expected.jsonl").open(encoding="utf-8") as lines:
        found = [_exchange(json.loads(line)) for line in lines]
    _har.cache_clear()
    return found


@pytest.fixture(scope="session")
def traffic_of() -> Callable[[str], list[Exchange]]:
    """Gives the recorded exchanges of an API id."""
    if not (ROOT / "expected.jsonl").is_file():
        pytest.skip("no recorded traffic here (LOOP_INSPECTOR_CORPUS)")

    def of(api: str) -> list[Exchange]:
        found = [exchange for exchange in _exchanges() if exchange.api == api]
        assert found, f"the recorded traffic holds nothing of {api}"
        return found

    return of
