"""The document as Markdown. A transcript's text stands in fences that it cannot close, or is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable

from inspector.export.blocks import Block, Heading, Items, Quote, Said, Table
from inspector.report.inert import inert, one_line
from loop_core.values import Severity

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&$^@]|:(?=//)|(?<=www)\.|^[#+=!-]|(?<=^\d)[.)]|(?<=!)\()")
_GRAVE = {Severity.ERROR: "**✖** ", Severity.WARNING: "**!** ", Severity.INFO: ""}


def markdown(blocks: Iterable[Block]) -> str:
    """The document."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def escaped(text: str) -> str:
    """`text` on one line, without a character that Markdown would take for its own."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def fenced(text: str) -> str:
    """`text` in a fence longer than any run of backticks in it."""
    plain = inert(text)
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{plain}\n{fence}"


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {escaped(block.text)}"
    if isinstance(block, Said):
        return _GRAVE[block.grave] + escaped(block.text)
    if isinstance(block, Items):
        return "\n".join(f"- {escaped(text)}" for text in block.texts)
    if isinstance(block, Table):
        head = [f"| {' | '.join(block.head)} |", f"|{' --- |' * len(block.head)}"]
        return "\n".join([*head, *(f"| {' | '.join(escaped(cell) for cell in row)} |" for row in block.rows)])
    assert isinstance(block, Quote)  # noqa: S101 - the last of the union
    return (f"{escaped(block.label)}:\n\n" if block.label else "") + fenced(block.text)
