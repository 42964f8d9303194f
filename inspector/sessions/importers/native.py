"""The native session file, as an importer; the format itself is in `inspector.sessions.native`."""

from __future__ import annotations

from inspector.sessions.native import MARK, read_session
from inspector.sessions.recording import Options, Reading

_MARK = f'"{MARK}"'.encode()


class NativeImporter:
    """Session files of this program."""

    name = "session"

    def sniff(self, head: bytes, path: str) -> int:
        """The first line is the header."""
        line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
        return 100 if line.lstrip().startswith(b"{") and _MARK in line else 0

    def read(self, data: bytes, path: str, options: Options) -> Reading:
        """All exchanges and acts.

        Raises:
            UnreadableError: the header is missing, or of a newer version.
        """
        return read_session(data)
