"""The messages of a request, and how those that are sent now differ from those before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.report.lines.spans import Line, Role, Span, field, more, said
from loop_core.values import Message, MessagePart, ReasoningPart, TextPart, ToolCall, ToolResultPart

SHOWN = 400
"""Characters of one message part that are shown."""
KNOWN = 80
"""The same of a message that was there before."""
LAST = 8
"""Messages that were there before, of which this many are shown; the others are counted."""


def message_lines(message: Message, mark: str = "", role: Role = Role.PLAIN, most: int = SHOWN) -> Iterator[Line]:
    """One message: who says it, and its parts."""
    for part in message.parts or (TextPart(""),):
        word, text = _part(part)
        gutter = (Span(mark, role),) if mark else ()
        name = Span(f"{message.role.value} ", Role.KEY)
        yield more(*gutter, name, *((said(f"{word} ", Role.DIM),) if word else ()), said(text, role, most))


def _part(part: MessagePart) -> tuple[str, str]:
    if isinstance(part, TextPart):
        return "", part.text
    if isinstance(part, ReasoningPart):
        return "thinking", part.text or "(opaque)"
    if isinstance(part, ToolCall):
        return f"calls {part.name}", part.arguments or ""
    if isinstance(part, ToolResultPart):
        return "error" if part.is_error else "result", part.text
    return part.type, part.json


def difference(old: Sequence[Message], new: Sequence[Message], when: str) -> list[Line]:
    """What is sent `when`, with what was added and taken away since; what stayed is shown short."""
    same = 0
    for one, other in zip(old, new, strict=False):
        if one is not other and one != other:
            break
        same += 1
    gone, come = old[same:], new[same:]
    size = f"{len(new):,} message{'' if len(new) == 1 else 's'} {when}"
    changed = [Span(f"{mark}{len(each):,} ", role) for mark, each, role in (
        ("+", come, Role.ADDED), ("−", gone, Role.REMOVED)) if each]
    lines = [field("history", *(changed or [Span("unchanged, ", Role.DIM)]), Span(size, Role.DIM))]
    if same > LAST:
        lines.append(more(Span(f"  … {same - LAST:,} before these", Role.DIM)))
    for message in new[max(0, same - LAST) : same]:
        lines += message_lines(message, "  ", Role.DIM, KNOWN)
    for mark, messages, role in (("− ", gone, Role.REMOVED), ("+ ", come, Role.ADDED)):
        for message in messages:
            lines += message_lines(message, mark, role)
    return lines
