"""Calls that a server's parser left in the text: the marks of the models' own call formats, and where one stands.

Such markup is never read as a call; it is only pointed at. A mark counts outside code alone, since texts explain these
formats, and where the tools of the request are known it must name one of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

_NEAR = 4_000
"""Characters behind a mark in which its tool is named; arguments may come first."""
_TRIES = 100
"""Openings of one format that are looked at: a text may be made to have many."""
_JSON_NAME = re.compile(r'"(?:name|tool_name|recipient_name|function)"\s*:\s*"([^"\\]{1,200})"')
_IN_TAG = re.compile(r'\s*[\w:.|\uff5c-]*\s*name="([^"<>]{1,200})"')


class Mark(NamedTuple):
    """One format: what opens a call, and where the name of the tool stands."""

    title: str
    opening: re.Pattern[str]
    """Its group `name`, where it has one, is the name of the tool."""
    named: re.Pattern[str] | None = None
    """Searched behind the opening, up to `until`, where the opening has no name: group 1 is the name."""
    until: str = ""
    """What ends the search; empty: nothing but its length."""


def _opens(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("NAME", r"(?P<name>[\w.:/-]{1,200}?)"))


MARKS: tuple[Mark, ...] = (
    Mark("Hermes, Qwen", _opens(r"<tool_call>\s*(?=[{\[])"), _JSON_NAME, "</tool_call>"),
    Mark("Qwen XML, Llama, Seed", _opens(r"<function=NAME\s*>")),
    Mark("GLM", _opens(r"<(?:\w{1,20}_)?tool_call>\s*NAME\s*(?=<(?:tool_sep|(?:\w{1,20}_)?arg_key|/\w{1,20})>)")),
    Mark("Anthropic, MiniMax, xAI", _opens(r'<(?:[\w-]{1,20}:)?(?:invoke|function_call)\s+name="NAME"')),
    Mark("Jamba, MiniMax", _opens(r"<(?:tool_calls|TOOLCALL)>\s*(?=[{\[])"), _JSON_NAME, "</"),
    Mark("Olmo", _opens(r"<function_calls>\s*NAME\(")),
    Mark("Mistral", _opens(r"\[TOOL_CALLS\]\s*(?=[{\[])"), _JSON_NAME),
    Mark("Mistral, named", _opens(r"\[TOOL_CALLS\]\s*NAME\s*(?=\[ARGS\]|\[CALL_ID\]|\{)")),
    Mark("Llama", _opens(r"<\|python_tag\|>\s*(?=\{)"), _JSON_NAME),
    Mark("Llama, Python", _opens(r"<\|python_(?:tag|start)\|>\s*\[?\s*NAME(?:\.call)?\(")),
    Mark("DeepSeek", _opens(
        r"<[|\uff5c]tool[\u2581_]calls?[\u2581_]begin[|\uff5c]>\s*(?:function<[|\uff5c]tool[\u2581_]sep[|\uff5c]>)?"
        r"\s*NAME\s*(?=<[|\uff5c]tool|\n|$)")),
    Mark("DeepSeek DSML", _opens(r"<[|\uff5c]+DSML[|\uff5c]+"), _IN_TAG, ">"),
    Mark("Kimi K2", _opens(r"<\|tool_call_begin\|>\s*(?:functions\.)?NAME(?::\d+)?\s*(?=<\||$)")),
    Mark("Kimi K3", _opens(r'<\|open\|>[^<]{0,200}?\btool="NAME"')),
    Mark("gpt-oss", _opens(r"\bto=functions\.NAME(?=[\s<]|$)")),
    Mark("Granite, Phi", _opens(r"<\|tool_call\|>\s*(?=[{\[])"), _JSON_NAME),
    Mark("LFM", _opens(r"<\|tool_call_start\|>\s*\[\s*NAME\(")),
    Mark("Functionary", _opens(r"<\|recipient\|>\s*NAME\s*(?=<\|)")),
    Mark("InternLM", _opens(r"<\|action_start\|>\s*<\|plugin\|>\s*(?=\{)"), _JSON_NAME),
    Mark("Command", _opens(r"<\|START_ACTION\|>\s*(?=[{\[])"), _JSON_NAME),
    Mark("Gemma", _opens(r"<start_function_call>\s*call:NAME\s*(?=\{|$)")),
)
"""What opens a call in the text of a model, by the models that write it so (their chat templates; vLLM's and SGLang's
tool parsers name the same marks)."""


class Leak(NamedTuple):
    """A call that was left in a text: characters `start` to `end` open it and name its tool."""

    title: str
    tool: str
    start: int
    end: int


def leaked(text: str, tools: Collection[str] | None) -> Leak | None:
    """The first call that a text holds as markup, outside code; `tools` are the declared names, None where unknown."""
    if not any(sign in text for sign in _SIGNS):
        return None
    code = _code(text)
    found = [leak for leak in _all(text, tools) if not any(start <= leak.start < end for start, end in code)]
    return min(found, key=lambda leak: leak.start, default=None)


_SIGNS = ("<", "[TOOL_CALLS]", "to=functions.")
"""One of these is in every mark: most texts hold none."""


def _all(text: str, tools: Collection[str] | None) -> Iterator[Leak]:
    for mark in MARKS:
        for opened in islice(mark.opening.finditer(text), _TRIES):
            for name, end in _names(mark, opened, text):
                if tools is None or _declared(name, tools):
                    yield Leak(mark.title, name, opened.start(), end)
                    break


def _names(mark: Mark, opened: re.Match[str], text: str) -> Iterator[tuple[str, int]]:
    if mark.named is None:
        yield opened["name"], opened.end("name")
        return
    limit = text.find(mark.until, opened.end()) if mark.until else -1
    end = min(opened.end() + _NEAR, len(text) if limit < 0 else limit)
    for found in mark.named.finditer(text, opened.end(), end):
        yield found[1], found.end(1)


def _declared(name: str, tools: Collection[str]) -> bool:
    return name in tools or name.removeprefix("functions.") in tools


_FENCE = re.compile(r"^[ \t>]{0,8}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]+?\1(?!`)")
"""Code inside a line."""


class Fence(NamedTuple):
    """A stretch of code between fences; one that is never closed reaches to the end of the text."""

    start: int
    end: int
    closed: bool


def fences(text: str) -> Iterator[Fence]:
    """The fenced code of a text, in order."""
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            if "`" not in line[2]:  # a line of inline code
                opened = line
        elif line[1].startswith(opened[1]) and not line[2].strip():
            yield Fence(opened.start(), line.end(), True)
            opened = None
    if opened is not None:
        yield Fence(opened.start(), len(text), False)


def _code(text: str) -> list[tuple[int, int]]:
    return [*((start, end) for start, end, _ in fences(text)), *(found.span() for found in INLINE.finditer(text))]
