"""By what the transcripts of agents are known; each is read by a module of its own, imported for such a file alone."""

from __future__ import annotations

import re
from typing import Any

from inspector.sessions.importers.body import look
from inspector.sessions.recording import Options, Reading

_CLAUDE_CODE = re.compile(rb'"parentUuid"\s*:\s*(?:null|")')


class ClaudeCodeImporter:
    """A session's file, or a subagent's."""

    name = "claude-code"

    def sniff(self, head: bytes, path: str) -> int:
        """A row of the tree, or one of the records that only Claude Code writes, among the first lines."""
        seen = look(head)
        for value in (seen.first, *seen.lines):
            if isinstance(value, dict) and _is_row(value):
                message = value.get("message")
                return 0 if isinstance(message, dict) and "parts" in message else 100  # parts: Qwen Code's are like it
        return 90 if seen.text[:1] == b"{" and _CLAUDE_CODE.search(head) and b'"sessionId"' in head else 0

    def read(self, data: bytes, path: str, options: Options) -> Reading:
        """Every answer in the file.

        Raises:
            UnreadableError: another API than its own was asked for.
        """
        from inspector.sessions.importers.claude_code import read

        return read(data, path, options)


def _is_row(value: dict[str, Any]) -> bool:
    if "sessionId" in value and "uuid" in value and ("isSidechain" in value or "parentUuid" in value):
        return True
    return value.get("type") in ("file-history-snapshot", "queue-operation") or "leafUuid" in value


class PiImporter:
    """A session's file."""

    name = "pi"

    def sniff(self, head: bytes, path: str) -> int:
        """The header is the first line."""
        first = look(head).first
        if not isinstance(first, dict) or first.get("type") != "session" or "id" not in first:
            return 0
        return 100 if "cwd" in first or "version" in first else 0

    def read(self, data: bytes, path: str, options: Options) -> Reading:
        """Every answer in the file, those of all branches."""
        from inspector.sessions.importers.pi import read

        return read(data, path, options)
