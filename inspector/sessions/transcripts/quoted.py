"""An answer that another session quotes whole: the end of a subagent that its own file does not record.

A parent takes up what a subagent said last as the result of the call that began it. A result that holds the whole text
shows that the subagent was done; it may stand in another file, so this is looked for when all files are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.sessions.transcripts import provenance
from inspector.sessions.values import Exchange, Input
from loop_core.frozen import replace
from loop_core.values import At, Part, Stop, ToolResultPart

TASKS = frozenset({"Task", "Agent", "TaskOutput", "AgentOutputTool"})
"""The tools of Claude Code whose results are what a subagent said."""
_TELLING = 40
"""Characters, white space left out: a shorter answer must be all of the result, or all before what follows it."""
BEHIND = ("agentid:", "<usage>")
"""Begin what Claude Code puts behind the words of a subagent."""
NOTICE = "<task-notification>"
"""Begins what tells a parent that a subagent in the background is done."""


def settle(exchanges: list[Exchange], inputs: Sequence[Input]) -> None:
    """Reads the end of every answer that nothing in its own file shows, and that a parent quotes whole."""
    open_ends = [at for at, exchange in enumerate(exchanges) if _open(exchange)]
    if not open_ends:
        return
    results = [*_results(exchanges, inputs), *_notices(exchanges)]
    for at in open_ends if results else ():
        exchange = exchanges[at]
        said = _folded(exchange.response.text or "")
        found = next((note for note, text in results if _quotes(text, said)), None)
        if found is not None:
            exchanges[at] = _ended(exchange, found)


def _open(exchange: Exchange) -> bool:
    if exchange.recorder is None or not provenance.unseen(exchange.response.stop_reason):
        return False
    return not exchange.response.tool_calls and bool((exchange.response.text or "").strip())


def _results(exchanges: Sequence[Exchange], inputs: Sequence[Input]) -> Iterator[tuple[str, str]]:
    """The results of calls that began a subagent, each with what is to be said of it."""
    tasks = {call.id for exchange in exchanges if exchange.recorder is not None
             for call in exchange.response.tool_calls if call.name in TASKS and call.id}
    if not tasks:
        return
    for exchange in exchanges:
        for message in exchange.request.messages if exchange.recorder and exchange.request else ():
            yield from (_result(exchange.path, part) for part in message.results if part.call_id in tasks)
    for given in inputs:
        yield from (_result(given.path, answer.result) for answer in given.answers if answer.result.call_id in tasks)


def _result(path: str, part: ToolResultPart) -> tuple[str, str]:
    return f"the result of call {part.call_id} quotes it whole ({path})", _folded(part.text)


def _notices(exchanges: Sequence[Exchange]) -> Iterator[tuple[str, str]]:
    for exchange in exchanges:
        for message in exchange.request.messages if exchange.recorder and exchange.request else ():
            if message.text.startswith(NOTICE):
                yield f"the notice that its task is done quotes it whole ({exchange.path})", _folded(message.text)


def _quotes(result: str, said: str) -> bool:
    if len(said) >= _TELLING:
        return said in result
    return result == said or (result.startswith(said) and result[len(said) :].startswith(BEHIND))


def _folded(text: str) -> str:
    return "".join(text.split()).lower()


def _ended(exchange: Exchange, note: str) -> Exchange:
    response = exchange.response
    at = response.stop_reason.evidence[0].at or At(Part.BODY)
    stop = provenance.inferred(Stop.END_TURN, None, at, "quoted", At(Part.REQUEST), note)
    told = provenance.finding(stop)
    others = tuple(found for found in response.findings if found.rule != "transcript.not_recorded")
    findings = (*others, told) if told is not None else others
    return replace(exchange, response=replace(response, stop_reason=stop, findings=findings))
