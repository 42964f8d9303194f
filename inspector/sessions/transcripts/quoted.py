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


def settle(exchanges: list[Exchange], inputs: Sequence[Input]) -> None:
    """Reads the end of every answer that nothing in its own file shows, and that a parent quotes whole."""
    open_ends = [at for at, exchange in enumerate(exchanges) if _open(exchange)]
    if not open_ends:
        return
    results = [(where, part.call_id, _folded(part.text)) for where, part in _results(exchanges, inputs)]
    for at in open_ends if results else ():
        exchange = exchanges[at]
        said = _folded(exchange.response.text or "")
        found = next(((where, key) for where, key, text in results if _quotes(text, said)), None)
        if found is not None:
            exchanges[at] = _ended(exchange, *found)


def _open(exchange: Exchange) -> bool:
    if exchange.recorder is None or not provenance.unseen(exchange.response.stop_reason):
        return False
    return not exchange.response.tool_calls and bool((exchange.response.text or "").strip())


def _results(exchanges: Sequence[Exchange], inputs: Sequence[Input]) -> Iterator[tuple[str, ToolResultPart]]:
    """The results of calls that began a subagent, each with the file that holds it."""
    tasks = {call.id for exchange in exchanges if exchange.recorder is not None
             for call in exchange.response.tool_calls if call.name in TASKS and call.id}
    if not tasks:
        return
    for exchange in exchanges:
        for message in exchange.request.messages if exchange.recorder and exchange.request else ():
            yield from ((exchange.path, part) for part in message.results if part.call_id in tasks)
    for given in inputs:
        yield from ((given.path, answer.result) for answer in given.answers if answer.result.call_id in tasks)


def _quotes(result: str, said: str) -> bool:
    if len(said) >= _TELLING:
        return said in result
    return result == said or (result.startswith(said) and result[len(said) :].startswith(BEHIND))


def _folded(text: str) -> str:
    return "".join(text.split()).lower()


def _ended(exchange: Exchange, where: str, key: str | None) -> Exchange:
    response = exchange.response
    at = response.stop_reason.evidence[0].at or At(Part.BODY)
    note = f"the result of call {key} quotes it whole ({where})"
    stop = provenance.inferred(Stop.END_TURN, None, at, "quoted", At(Part.REQUEST), note)
    told = provenance.finding(stop)
    others = tuple(found for found in response.findings if found.rule != "transcript.not_recorded")
    findings = (*others, told) if told is not None else others
    return replace(exchange, response=replace(response, stop_reason=stop, findings=findings))
