"""Lines about a live turn: its current activity and its waiting effect in full; the view model of a run in progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from inspector.config.settings import Settings
from inspector.live.answers import Answers, Source
from inspector.live.driver import Driver
from inspector.live.inputs import missing_key
from inspector.live.recorder import LiveTurn, replay_of_turns, run_of
from inspector.live.stepper import ArrivingAnswer, Phase
from inspector.replay import Replay
from inspector.replay.case import Case, open_case
from inspector.report.facts import TurnFacts, View, view
from inspector.report.lines import glyphs
from inspector.report.lines.spans import EMPTY, Line, Span, Tone, count_of, field, join_groups, paragraphs, quote, safe
from inspector.report.sentences import REQUEST_WORDS
from inspector.report.times_and_costs import duration_text
from inspector.report.verdict import TurnVerdict
from inspector.sessions import open_paths, redact
from inspector.sessions.thread import response_number
from loop_core.client.address import Server
from loop_core.client.exchange import LiveResponse
from loop_core.client.mask import Mask
from loop_core.client.outgoing import LiveRequest
from loop_core.errors import failure_words
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.continuation import Method
from loop_core.turn.state import Finish, RunTools, Send
from loop_core.turn.trace import Trace
from loop_core.values import Severity
from loop_core.wire.body import dump

# -- A live run in progress as the screens' view model ---------------------------------------------------------------
# It has the responses and the steps so far, and no verdict.

LIVE_WORD = "LIVE"
GLYPH, ASCII = "●", "*"


def live_view(driver: Driver) -> View:
    """The current view of a live run."""
    live, stepper = driver.live, driver.stepper
    # The effective policy replaces the chosen one with its overrides, so that each step shows the limits and policy in
    # force.
    start_settings = driver.start.settings
    settings = replace(start_settings, limits=stepper.plan.limits, policy=stepper.plan.policy, seam=None, method=None)
    turns = [LiveTurn(responses, steps) for responses, steps in zip(live.responses, stepper.turns, strict=True)]
    run_view = view(replay_of_turns(turns, settings, driver.start.path))
    if not turns[-1].responses:
        run_view = _with_first(run_view, turns[-1], settings)
    if live.phase is Phase.OVER:
        return run_view
    last = run_view.turns[-1]
    running = TurnVerdict(last.verdict.rank, LIVE_WORD, GLYPH, ASCII, Severity.WARNING, "", None, sure=False)
    return replace(run_view, turns=(*run_view.turns[:-1], last._replace(verdict=running)))


def recorded_case(path: str, server: Server) -> Case:
    """The recording of a run, read again; this masks secrets that the server sent in pieces. Raises `LoopError` if it
    cannot be read."""
    loaded, mask = open_paths([path]), Mask(server.secrets, redact.body)
    exchanges = tuple(replace(each, response=mask.response(each.response)) for each in loaded.exchanges)
    return open_case(loaded._replace(exchanges=exchanges))


def _with_first(view: View, live_turn: LiveTurn, settings: Settings) -> View:
    """The view with a turn that has no response yet."""
    old, turn = view.replay, live_turn.steps[-1].turn
    run = run_of(live_turn, (), len(old.trace.steps))
    replay = Replay(old.case, settings, Trace((*old.trace.steps, *live_turn.steps)), (*old.turns, run))
    none = TurnVerdict(0, "NOT SENT", "∅", "-", Severity.WARNING, "nothing was sent", None, sure=False)
    facts = TurnFacts(
        run, turn.state, turn.terminal or "", turn.notice, turn.spend, *turn.joined_answer(), none)
    return View(replay, view.inputs, view.responses, (*view.turns, facts), view.findings)


SHOWN_CHARS = 4_000
"""The largest number of characters of a recorded or typed result that are shown beside its call."""
Keys = Callable[[str], str]
"""A function that gives the name of a binding's key, by the binding's id."""


def activity_line(driver: Driver, key: Keys) -> Line:
    """The current activity and the possible actions: the first line of the screen."""
    live = driver.live
    line = _PHASE_LINES[live.phase](driver, key)
    if live.problem:
        line = (Span("✖ ", Tone.ERROR), safe(live.problem, Tone.ERROR), Span(" · ", Tone.DIM), *line)
    return line


def _waiting_line(driver: Driver, key: Keys) -> Line:
    live = driver.live
    if live.failed_answer is not None:
        return (Span("╳ NO ANSWER", Tone.ERROR), Span("  "), safe(why_no_answer(live.failed_answer), Tone.PLAIN, 200),
                *_key_line(key, ("live.again", "sends it again"), ("live.body", "edits it"),
                       ("live.do", "passes it to the machine")))
    head, doing = Span(f"{GLYPH} WAITS", Tone.WARN), live.pending
    if isinstance(doing, Send) and driver.stepper.request is None:
        return (Span("✖ CANNOT BE SENT", Tone.ERROR), Span("  "), safe(driver.stepper.unsendable, Tone.PLAIN, 200),
                *_key_line(key, ("live.cancel", "cancels")))
    if isinstance(doing, Send):
        return (head, Span("  "), Span(f"to send {_request_name(doing, driver)}"), *_edit_note(driver),
                *_key_line(key, ("live.do", "sends"), ("live.edit", "budget, limits"), ("live.body", "body"),
                       ("live.run", "runs to the end")))
    if isinstance(doing, RunTools):
        open_ = sum(driver.answers.plan(doing, place) is None and bool(driver.answers.ways(doing, place))
                    for place in range(len(doing.batch)))
        left = Span(f", {open_} without an answer" if open_ else "", Tone.WARN)
        calls = count_of(len(doing.batch), "call")
        return (head, Span("  "), Span(f"to answer {calls}"), left,
                *_key_line(key, ("live.do", "answers"), ("live.edit", "decides each")))
    word = Tone.OK if doing.terminal == "completed" else Tone.WARN
    notice = (Span(" · ", Tone.DIM), safe(doing.notice, Tone.PLAIN, 160)) if doing.notice else ()
    return (head, Span("  "), Span("the turn ended: "), Span(doing.terminal, word), *notice,
            *_key_line(key, ("live.do", "accepts"), ("live.say", "writes a further message")))


def _asking_line(driver: Driver, key: Keys) -> Line:
    answer = driver.live.answer
    number = "1" if answer is None else response_number(answer.number)
    return (Span(f"{GLYPH} ASKED", Tone.WARN), Span("  "), Span(f"request {number} was sent, no answer yet"),
            *_silence_line(driver), *_doing_line(driver, key))


def _streaming_line(driver: Driver, key: Keys) -> Line:
    answer = driver.live.answer
    assert answer is not None  # noqa: S101 - `Driver.on_request` sets it before this phase begins
    number = response_number(answer.number)
    return (Span(f"{GLYPH} STREAMING", Tone.WARN), Span("  "),
            Span(f"the answer to request {number}, HTTP {answer.status}, its tokens not reported yet"),
            *_silence_line(driver), *_doing_line(driver, key))


LONG_SILENCE = 2
"""The number of seconds without a byte from which the silence is shown while an answer is expected."""


def _silence_line(driver: Driver) -> Line:
    seconds = driver.live.silent
    return (Span(f", silent for {seconds} s", Tone.WARN),) if seconds >= LONG_SILENCE else ()


def _retrying_line(driver: Driver, key: Keys) -> Line:
    last = driver.live.responses[-1][-1]
    return (Span(f"{GLYPH} RETRIES", Tone.WARN), Span("  "), safe(why_no_answer(last), Tone.PLAIN, 120),
            Span(f" · sent again in {driver.live.seconds_left:.0f} s, retry {last.ask.attempt + 1}", Tone.STRONG),
            *_key_line(key, ("live.cancel", "cancels")))


_PHASE_LINES: Mapping[Phase, Callable[[Driver, Keys], Line]] = {
    Phase.WAITING: _waiting_line, Phase.ASKING: _asking_line, Phase.STREAMING: _streaming_line,
    Phase.RETRYING: _retrying_line, Phase.OVER: lambda driver, key: (Span("the turn is over"),),
    Phase.RUNNING: lambda driver, key: (
        Span(f"{GLYPH} TOOLS", Tone.WARN), Span("  the calls are being answered"), *_doing_line(driver, key)),
}


def _key_line(key: Keys, *each: tuple[str, str]) -> Line:
    spans: list[Span] = []
    for name, words in each:
        spans += [Span(" · ", Tone.DIM), Span(key(name), Tone.PRESS), Span(f" {words}", Tone.DIM)]
    return tuple(spans)


def _doing_line(driver: Driver, key: Keys) -> Line:
    if driver.live.running:
        return _key_line(key, ("live.pause", "waits after it"), ("live.cancel", "cancels"))
    return _key_line(key, ("live.cancel", "cancels"), ("live.run", "goes on to the end after it"))


def _request_name(send: Send, driver: Driver) -> str:
    if not send.ordinal:
        return "the first request of the turn"
    return f"{REQUEST_WORDS[send.place]} {send.ordinal}{HOW_SENT.get(send.method, f' ({send.method.value})')}"


HOW_SENT: Mapping[Method, str] = {Method.REPAIR: ", which asks for the held call again", Method.NUDGE: ""}
"""Method of a request -> the words after its name, if the method in brackets would only repeat the name."""


def _edit_note(driver: Driver) -> Line:
    edited = driver.stepper.edits
    return (Span(f", {' and '.join(edited)} edited", Tone.MARK),) if edited else ()


def why_no_answer(answer: LiveResponse) -> str:
    """Why a request got no answer, in a few words."""
    error = answer.response.error
    message = error.message if error is not None and answer.status is not None else ""
    return failure_words(answer.status, message or answer.problem) or "nobody answered"


def waiting_lines(driver: Driver) -> list[Line]:
    """The waiting effect in full: the request as it will be sent, the calls, or the end."""
    failed, effect, request = driver.live.failed_answer, driver.live.pending, driver.stepper.request
    before = [] if failed is None else [*_failure_lines(failed), EMPTY]
    if isinstance(effect, RunTools):
        return [*before, *call_lines(effect, driver.answers)]
    if not isinstance(effect, Send):
        return [*before, *end_lines(effect)]
    missing = missing_key(driver.start.server, driver.start.request.model)
    return before if request is None else [*before, *request_lines(request, driver.stepper.edits, missing)]


def request_lines(request: LiveRequest, parts: tuple[str, ...], missing: str) -> list[Line]:
    """A request as it will be sent, with its key masked; `missing` names the variable of a missing key."""
    marks = (Span(f"  {' and '.join(parts)} edited", Tone.MARK),) if parts else ()
    lines: list[Line] = [(Span("NEXT REQUEST", Tone.TITLE), *marks)]
    lines += [(safe(f"✖ no key: {missing}", Tone.ERROR),)] if missing else []
    lines.append((safe(f"{request.method} {request.url}", Tone.STRONG),))
    lines += [(safe(f"{name}: ", Tone.KEY), safe(value, Tone.DIM)) for name, value in request.headers]
    if request.body is None:
        return [*lines, EMPTY, (Span("no body: it fetches an answer that is still being generated", Tone.DIM),)]
    size = len(dump(request.body).encode())  # as it is sent: the lines below are indented
    lines += [EMPTY, (Span(f"{size:,} bytes of JSON", Tone.DIM),)]
    return [*lines, *paragraphs(json.dumps(request.body, indent=2, ensure_ascii=False))]


def call_lines(effect: RunTools, answers: Answers) -> list[Line]:
    """The waiting calls, each with its arguments and its planned answer."""
    lines: list[Line] = [(Span("CALLS", Tone.TITLE), Span(f"  {len(effect.batch)} to be answered", Tone.DIM))]
    for place in range(len(effect.batch)):
        lines += [EMPTY, *waiting_call_lines(effect, place, answers)]
    return lines


def waiting_call_lines(effect: RunTools, place: int, answers: Answers) -> list[Line]:
    """The lines of one waiting call."""
    verdict = effect.batch[place]
    glyph, role = glyphs.ADMISSION[verdict.admission]
    call = verdict.call
    lines: list[Line] = [(Span(f"{glyph} {verdict.admission.value.upper()} ", role),
                          safe(call.name or "unnamed", Tone.STRONG), safe(f"  {call.id or 'no id'}", Tone.DIM))]
    text = call.arguments or ""
    if verdict.arguments is not None and isinstance(verdict.arguments, dict):
        text = json.dumps(verdict.arguments, indent=2, ensure_ascii=False)
    lines += [(Span("│ ", Tone.RULE), *row) for row in paragraphs(text[:SHOWN_CHARS])]
    lines += _answer(effect, place, verdict, answers)
    return lines


def _answer(effect: RunTools, place: int, verdict: Verdict, answers: Answers) -> list[Line]:
    if verdict.admission is not Admission.READY:
        return [field("answer", safe(f"not run: {verdict.why}", Tone.WARN))]
    decision = answers.plan(effect, place)
    if decision is None:
        return [field("answer", Span("none yet: without one, the model is told that there is no such tool", Tone.WARN))]
    if decision.how is Source.RUN:
        return [field("answer", Span("its tool answers it"))]
    if decision.how is Source.REFUSED:
        return [field("answer", Span("refused: the model is told so", Tone.WARN))]
    text, is_error, whence = decision.text, decision.is_error, "typed by you"
    if decision.how is Source.RECORDED:
        found = answers.recorded_result(effect, place)
        if found is not None:
            text, is_error, whence = found[0].text, found[0].is_error, f"recorded: {found[1]}"
    lines: list[Line] = [field("answer", safe(whence), Span(", an error" if is_error else "", Tone.WARN))]
    return [*lines, *((Span("  ", Tone.RULE), *row) for row in paragraphs(text[:SHOWN_CHARS]))]


def end_lines(effect: Finish) -> list[Line]:
    """The end that waits for the operator's acceptance."""
    role = Tone.OK if effect.terminal == "completed" else Tone.ERROR
    lines: list[Line] = [(Span("END OF THE TURN", Tone.TITLE),), field("reason", Span(effect.terminal, role))]
    if effect.notice:
        lines.append(field("notice", safe(effect.notice)))
    return lines


def _failure_lines(answer: LiveResponse) -> list[Line]:
    """The lines about a failed answer, as it was received."""
    lines: list[Line] = [(Span("NO ANSWER", Tone.TITLE),), field("why", safe(why_no_answer(answer), Tone.ERROR))]
    lines += [field("" if place else "headers", safe(f"{name}: {value}", Tone.DIM))
              for place, (name, value) in enumerate(answer.headers)]
    text = answer.body[:SHOWN_CHARS].decode("utf-8", "replace")
    return [*lines, *([field("body", quote(text, Tone.RAW, SHOWN_CHARS))] if text else [])]


def exchange_lines(driver: Driver) -> list[Line]:
    """The requests of this turn that got no answer, and when the next attempt starts."""
    lines: list[Line] = []
    for response in driver.live.responses[-1]:
        if response.status is None or response.status >= 400:
            lines.append((Span("╳ ", Tone.WARN), Span(f"request {response_number(response.ask.number)}", Tone.STRONG),
                          safe(f"  {why_no_answer(response)}", Tone.DIM, 160)))
    if driver.live.phase is Phase.RETRYING and lines:
        lines.append((Span("  "), Span(f"sent again in {driver.live.seconds_left:.0f} s", Tone.WARN)))
    return lines


def arrival_text(answer: ArrivingAnswer) -> str:
    """The amount of an answer that has arrived, for the status line; its token count is known only at its end."""
    parts = [f"+{len(answer.text):,} chars"]
    if answer.thinking:
        parts.append(f"{len(answer.thinking):,} thinking")
    if answer.call:
        parts.append(f"{len(answer.call):,} of calls")
    return " ".join([*parts, duration_text(answer.ms)])


def arrival_lines(answer: ArrivingAnswer) -> list[Line]:
    """The lines below a text that is still arriving."""
    lines: list[Line] = []
    if answer.thinking and not answer.text:
        lines.append((Span(f"thinking, {len(answer.thinking):,} characters so far", Tone.DIM),))
    if answer.call:
        lines.append((Span(f"arguments of calls, {len(answer.call):,} characters so far; no call runs before the "
                           "answer has ended", Tone.DIM),))
    return lines


def head_lines(answer: ArrivingAnswer) -> list[Line]:
    """The first lines about an answer that is still arriving."""
    parts = [(Span(f"Response {response_number(answer.number)}", Tone.TITLE),), (Span("still coming", Tone.WARN),)]
    if answer.status is not None:
        parts.append((Span(f"HTTP {answer.status}"),))
    parts.append((Span("tokens are reported at its end", Tone.DIM),))
    return [join_groups(parts), EMPTY]
