"""Recorded sessions: reading them in any format, without credentials, and finding the turns in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.sessions.recording import Loaded

__all__ = ["open_paths"]


def open_paths(
    paths: Sequence[str], *, api: str | None = None, profile: str | None = None, stdin: bytes | None = None
) -> Loaded:
    """Reads files and folders; `-` is standard input, whose bytes are given.

    Raises:
        CallerError: there is no such API or profile.
    """
    from inspector.sessions.open import open_paths as read  # what lists the samples needs no importer

    return read(paths, api=api, profile=profile, stdin=stdin)
