"""The files and wire formats that can be read, as text and as a document: `inspector formats`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers import IMPORTERS, AgentFolder, FileFormat
from loop_core.wire import FORMATS

SCHEMA = "loop-inspector/formats/1"


def document() -> dict[str, Any]:
    """The formats as plain values."""
    return {"schema": SCHEMA, "files": [_values(name, row) for name, row in _rows()], "wire": list(FORMATS)}


def text() -> str:
    """The formats for people: what a file begins with, what it keeps, and where its agent writes it."""
    lines = ["Files, in the order in which they are tried:", ""]
    for name, row in _rows():
        lines.append(f"{row.title} ({name})")
        lines.append(f"  begins with    {row.expects}")
        lines.append(f"  stop reasons   {row.keeps.words}")
        kept = [word for word, held in (("output cap", row.keeps.cap), ("usage", row.keeps.usage),
                                        ("the provider's bytes", row.keeps.wire)) if held]
        lines.append(f"  also keeps     {', '.join(kept) or 'none of cap, usage, bytes'}")
        lines += [f"  {'written to' if not at else '          '}     {place}" for at, place in enumerate(_places(row))]
        lines.append("")
    return "\n".join([*lines, "Wire formats:", "", *(f"  {name}" for name in FORMATS)]) + "\n"


def _rows() -> Iterator[tuple[str, FileFormat]]:
    """The formats that are read; those that are only named are none."""
    return ((name, row) for name, row in IMPORTERS.items() if name != "known")


def _values(name: str, row: FileFormat) -> dict[str, Any]:
    return {
        "name": name, "title": row.title, "begins_with": row.expects,
        "keeps": {"stop_reason": row.keeps.words.name.lower(), "cap": row.keeps.cap, "usage": row.keeps.usage,
                  "wire": row.keeps.wire},
        **({"folders": [{"agent": each.agent, "variable": each.variable, "path": _path(each)}
                        for each in row.folders]} if row.folders else {}),
    }


def _places(row: FileFormat) -> Iterator[str]:
    for each in row.folders:
        variable = f" ({each.variable})" if each.variable else ""
        yield f"{each.agent}: {_path(each)}{variable}"


def _path(each: AgentFolder) -> str:
    return os.path.join("~", each.folder, *each.parts, "|".join(each.names))
