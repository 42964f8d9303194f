"""The exit: whatever leaves the program as text goes through here, and no credential goes out with it.

Files and downloads (`inspector.export.write.encoded`), standard output and error (`inspector.commands.common`),
copies to the clipboard and what is kept of a session all call `text`. What was read was masked already; this catches
what stands whole only in what was made of it, and what a form of export took from elsewhere.
"""

from __future__ import annotations


def text(said: str) -> str:
    """The same text, as long, without credentials."""
    from inspector.sessions import redact  # not where nothing is read: `--help` and completion do without it

    return redact.text(said)
