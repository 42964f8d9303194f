"""Two spans of one answer: an instrumentation of a framework writes one, and that of the client below it another.

LangChain's span of a chat model holds the span of OpenAI's client, for example. The inner span is nearer to the
provider and is kept, unless only the outer one has the answer. A span within a tool or an agent is another request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from inspector.sessions.importers.span_names import TraceSpan, fact, is_answer, is_tool, outputs_of, word_of
from inspector.sessions.transcripts.member_values import known_text

_DEEPEST = 64
"""The largest number of spans between two spans of one answer; damaged ids may form a ring of parents."""
_AGENTS = frozenset({"invoke_agent", "create_agent", "AGENT"})
"""The operations, and OpenInference's kind, of spans that are a run of an agent."""


def each_answer_once(spans: Sequence[TraceSpan]) -> list[TraceSpan]:
    """The spans without those whose answer is in another span, around them or within them."""
    by_id = {(span.trace, span.id): span for span in spans}
    around: dict[int, TraceSpan] = {}
    for span in spans:
        outer = _around(span, by_id) if is_answer(span.attributes) else None
        if outer is not None:
            around[id(span)] = outer
    waiting = Counter(map(id, around.values()))
    within: dict[int, list[TraceSpan]] = {}
    doubles: set[int] = set()
    # From the innermost spans outwards; spans that form a ring have no innermost one, and stay.
    ready = [span for span in spans if id(span) in around and not waiting[id(span)]]
    for span in ready:  # it grows
        best = _best(span, within.get(id(span), []), doubles)
        outer = around.get(id(span))
        if outer is not None:
            within.setdefault(id(outer), []).append(best)
            waiting[id(outer)] -= 1
            if not waiting[id(outer)]:
                ready.append(outer)
    return [span for span in spans if id(span) not in doubles]


def _best(outer: TraceSpan, inner: Sequence[TraceSpan], doubles: set[int]) -> TraceSpan:
    """The span that stands for the answer of `outer`; the others that hold the same answer go to `doubles`."""
    content, contents = _content(outer), [_content(each) for each in inner]
    if not inner or (content and content not in contents and any(contents)):
        return outer  # the inner ones are other answers
    if len(inner) == 1 and _completeness(outer) > _completeness(inner[0]):
        doubles.add(id(inner[0]))
        return outer
    doubles.add(id(outer))
    return inner[contents.index(content)] if content in contents else inner[-1]


def _around(span: TraceSpan, by_id: dict[tuple[str, str], TraceSpan]) -> TraceSpan | None:
    """The nearest span of an answer around a span, without a tool or an agent between them."""
    here = span
    for _ in range(_DEEPEST):
        above = by_id.get((here.trace, here.parent)) if here.parent else None
        if above is None or is_tool(above.attributes) or _is_agent(above):
            return None
        if is_answer(above.attributes):
            return above
        here = above
    return None


def _is_agent(span: TraceSpan) -> bool:
    names = ("gen_ai.operation.name", "openinference.span.kind")
    return any(known_text(span.attributes.get(name)) in _AGENTS for name in names)


def _content(span: TraceSpan) -> tuple[str, ...]:
    """The text and the names of the calls of an answer; empty if the span does not hold it."""
    output = next(iter(outputs_of(span.attributes)), None)
    if output is None or not (output.text or output.calls):
        return ()
    return ("".join(output.text.split()), *(name for _, name, _ in output.calls))


def _completeness(span: TraceSpan) -> tuple[bool, bool, bool]:
    """How much of an answer a span holds: its content, its stop word, its count of tokens."""
    attributes = span.attributes
    return bool(_content(span)), word_of(attributes) is not None, fact(attributes, "output") is not None
