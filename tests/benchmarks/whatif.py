"""What a what-if costs over many recorded answers, and one session's size against another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from corpus import recordings
from measure import Line, Report, Skip, best, milliseconds

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import Case, open_case
from inspector.report.facts import View, view
from inspector.report.lines import steps
from inspector.report.lines.steps import Outline
from inspector.sessions import open_paths
from inspector.whatif.tree import Tree, branch, preview, step_pairs
from loop_core import decode

RESPONSES, IN_A_TURN = 1_000, 4
LIMITS = {
    "a limit that ends turns earlier": {"continuation_max_attempts": "1"},
    "a limit that no turn meets": {"max_tool_steps": "9"},
}
CHANGES = {
    **LIMITS,
    "another initial max_tokens": {"max_tokens": "77"},
    "another policy": {"policy": "pi-presence"},
}
ROUNDS = 7
MOST_MS = 100
"""The CPU time of one what-if over the recorded corpus: it is the answer to a key press."""


def stream_of(number: int, tokens: int, last: bool) -> str:
    """A streamed answer, an event a token, cut at its cap unless it is the last of its turn."""
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1_763_000_000, "model": "m-1"}

    def event(delta: object, reason: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return "data: " + json.dumps({**head, "choices": [choice], **more}) + "\n\n"

    usage = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}
    words = "".join(event({"content": f" word {number} {each}"}) for each in range(tokens))
    return words + event({}, "stop" if last else "length", usage=usage) + "data: [DONE]\n\n"


def session(tokens: int) -> bytes:
    """A thousand responses in turns of four: an answer that is cut, and continued three times."""
    made: list[str] = []
    for turn in range(RESPONSES // IN_A_TURN):
        history = [{"role": "user", "content": f"question {turn} of many"}]
        for part in range(IN_A_TURN):
            number = turn * IN_A_TURN + part
            asked = {"model": "m-1", "max_tokens": tokens, "stream": True, "messages": list(history)}
            made.append(json.dumps({
                "request": {"url": "https://api.openai.com/v1/chat/completions", "method": "POST", "body": asked},
                "response": {"status": 200, "headers": {"content-type": "text/event-stream"},
                             "body": stream_of(number, tokens, part == IN_A_TURN - 1)},
            }))
            history += [
                {"role": "assistant", "content": "".join(f" word {number} {each}" for each in range(tokens))},
                {"role": "user", "content": "Continue exactly from where you left off."},
            ]
    return "\n".join(made).encode()


def short(count: int) -> View:
    """A session of so many steps: turns of one whole answer."""
    lines = [json.dumps({
        "request": {"model": "m", "messages": [{"role": "user", "content": f"question {number}"}]},
        "response": {"id": f"r{number}", "object": "chat.completion", "model": "m", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": f"answer {number}"}, "finish_reason": "stop"}]},
    }) for number in range(-(-count // 3))]
    return view(replay(open_case(open_paths(["-"], stdin="\n".join(lines).encode()))))


def report() -> Report:
    """What-ifs over a built session and over the corpus, then stepping in two runs of 100,000 steps."""
    for tokens in (300, 100):
        case = open_case(open_paths(["-"], stdin=session(tokens)))
        yield from _against_decoding(f"1,000 of {tokens} tokens", case)
    paths = recordings()
    if paths:
        yield from _over_the_corpus(open_case(open_paths(paths)))
    else:
        yield Skip("what-ifs over the corpus", "no corpus; name its folder with LOOP_INSPECTOR_CORPUS")
    yield from _by_size()


def _over_the_corpus(case: Case) -> Report:
    recorded = sum(each.recorded for each in case.recording.exchanges)
    took = best(_branches(case, LIMITS), ROUNDS)
    for title, seconds in took.items():
        yield Line(f"{recorded:,} recorded exchanges: {title}", seconds * 1000, unit=" ms", most=MOST_MS)


def _against_decoding(name: str, case: Case) -> Report:
    sent = [(each.api, each.body, each.response.http_status, each.headers)
            for each in case.recording.exchanges if each.recorded]

    def decode_all() -> None:
        for api, body, status, headers in sent:
            decode(api, body, http_status=status, headers=headers)

    branches = _branches(case, CHANGES)
    took = best({"decoding": decode_all, **branches}, ROUNDS)
    for title in branches:
        yield Line(f"{name}: {title} ÷ decoding", took[title] / took["decoding"],
                   note=milliseconds(took[title], took["decoding"]))


def _branches(case: Case, changes: dict[str, dict[str, str]]) -> dict[str, Callable[[], object]]:
    """The what-ifs that are measured, each as a function that makes it anew."""
    original = view(replay(case))
    return {title: partial(branch, original, settings_of(change, Settings())) for title, change in changes.items()}


def _by_size() -> Report:
    stepping = {}
    for count in (100, 100_000):
        tree = Tree(short(count))
        middle = len(tree.original.view.steps) // 2
        other, _ = tree.add(tree.original, settings_of({"max_tokens": "9"}, Settings()), middle)
        stepping[str(count)] = _stepper(tree.original.view, other.view)
    took = best(stepping, ROUNDS)
    yield Line("switching and stepping among 100,000 steps ÷ 100", took["100000"] / took["100"], most=1.3,
               note=milliseconds(took["100000"], took["100"]))
    many = short(100_000)
    late = len(many.steps) - 3
    raised = settings_of({"max_tokens": "9"}, Settings())
    took = best({"preview": lambda: preview(many.replay, raised, late), "view": lambda: view(many.replay)}, 3)
    yield Line("a preview among 100,000 steps ÷ viewing them", took["preview"] / took["view"],
               note=milliseconds(took["preview"], took["view"]))


def _stepper(left: View, right: View) -> Callable[[], None]:
    """A hundred times: to the other run, a step on, the rows about it, and where it stands beside the other run."""
    outlines = (Outline(left), Outline(right))
    middle, screen = len(left.steps) // 2, 20

    def step() -> None:
        for number in range(100):
            side = number % 2
            outline, index = outlines[side], middle - screen // 2 + number % screen
            first = outline.row_of(index) - screen // 2
            for row in range(first, first + screen):
                steps.row(outline, row, index)
            turn = left.replay.turn_at(index)
            pairs = step_pairs(left.replay.turns[turn], right.replay.turns[turn])
            assert pairs[0].left == left.replay.turns[turn].first

    return step
