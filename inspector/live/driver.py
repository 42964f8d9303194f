"""Runs the effects of a live turn one by one, as its operator decides, and records the traffic and the decisions.

The driver holds the connection, the recording and the effect in progress; `stepper` holds the state of the turn. The
driver depends on no screen: it calls a function when something has changed. httpx is imported when the first request is
sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from inspector.live.headless import LiveStart, plan_turn, refuse_secrets
from inspector.live.recorder import Recorder
from inspector.live.stepper import BUSY, ArrivingAnswer, Phase, RunState, Stepper, begin_turn
from inspector.sessions import redact
from inspector.sessions.native import BY_US
from loop_core.client.exchange import LiveResponse, Observer
from loop_core.client.outgoing import LiveRequest
from loop_core.errors import CallerError, LoopError
from loop_core.turn.limits import Limits
from loop_core.turn.state import Cancel, Finish, RunTools, Send, ToolResults, cancelled_answer
from loop_core.values import ToolResultPart

if TYPE_CHECKING:
    from loop_core.client.exchange import Connection
    from loop_core.client.transport import AsyncLive


class Driver(Observer):
    """One live run, controlled by its operator."""

    def __init__(
        self, start: LiveStart, on_change: Callable[[], None] | None, line: Connection | None = None
    ) -> None:
        """`on_change` is called when the phase or the steps have changed, but not for each piece of a stream. Raises
        `LoopError` if the first request cannot be sent in this format."""
        request, plan = plan_turn(start.request, start.server, start.settings)
        self.start, self.answers = start, start.answers
        self.live = RunState(begin_turn("t1", request, start.server, plan))
        self.recorder: Recorder | None = None
        """The recording; None until the first request is sent, when earlier settings are written too."""
        self._settings = start.settings
        self._changed = on_change or (lambda: None)
        self._line = line
        self._source: AsyncLive | None = None
        self._sent = 0
        self._moved = asyncio.Event()
        self._edited: tuple[str, ...] = ()

    @property
    def path(self) -> str | None:
        """The path of the recording, once it exists."""
        return self.recorder.path if self.recorder is not None else None

    @property
    def stepper(self) -> Stepper:
        """The current state of the turn."""
        return self.live.stepper

    def _recording(self) -> Recorder:
        """The recording, which is begun at the first call. Raises `CallerError` if its file already exists or cannot be
        written."""
        if self.recorder is None:
            self.recorder = Recorder(
                self.start.path, title=f"{self.start.request.model}, live", provenance=f"recorded {BY_US}, by hand")
            self.recorder.settings(self._settings)
        return self.recorder

    async def act(self) -> None:
        """Runs the waiting effect, and the following ones if the turn runs without waiting."""
        if self.live.phase is Phase.WAITING:
            await self._run_effect()
            await self._go_on()

    async def send_again(self) -> None:
        """Sends a request again that got no answer. Raises `CallerError` if no failed request waits."""
        request, failed = self.live.stepper.request, self.live.failed_answer
        if failed is None or request is None:
            raise CallerError("only a request that got no answer can be sent again")
        self.live.failed_answer, self.live.problem = None, ""
        await self._send(replace(request, number=self._sent, attempt=failed.ask.attempt + 1, repeats=failed.ask.number))
        await self._go_on()

    async def run(self) -> None:
        """Runs the effects without waiting, to the end or until `pause`; continues after the effect in progress."""
        self.live.running = True
        self._changed()
        await self.act()

    async def _go_on(self) -> None:
        live = self.live
        while live.running and live.phase is Phase.WAITING and not live.problem:
            await self._run_effect()
        live.running = False
        self._changed()

    async def _run_effect(self) -> None:
        """Runs one effect. A failed answer that waits is passed to the machine unchanged."""
        live = self.live
        live.problem = ""
        if live.failed_answer is not None:
            failed, live.failed_answer = live.failed_answer, None
            self._change(Phase.WAITING, live.stepper.after_answer(failed, self._sent))
        elif isinstance(live.pending, Send):
            await self._send(live.stepper.request)
        elif isinstance(live.pending, RunTools):
            await self._run_tools(live.pending)
        else:
            self._finish()

    def pause(self) -> None:
        """Waits again after the effect in progress."""
        self.live.running = False
        self._changed()

    def cancel(self) -> None:
        """Ends the turn, whatever is in progress."""
        live = self.live
        live.running = False
        # The source ends the request; the effect in progress then takes the turn to its end.
        if live.phase in BUSY:
            if self._source is not None:
                self._source.cancel()
        elif live.failed_answer is not None:
            failed, live.failed_answer = live.failed_answer, None
            self._end_cancelled(failed)
        elif live.phase is Phase.WAITING and not isinstance(live.pending, Finish):
            if self._sent:
                self._recording().record_cancel(self._sent - 1, answered=True)
            self._change(Phase.WAITING, live.stepper.after_event(Cancel(), self._sent))

    def say(self, text: str) -> None:
        """Begins the next turn with a message of the user. Raises `CallerError` if the turn has not ended, the text is
        empty, or `max_follow_ups` is reached."""
        live = self.live
        if live.phase is not Phase.WAITING or not isinstance(live.pending, Finish):
            raise CallerError("a new message can be sent only after the turn has ended")
        stepper = live.stepper.next_turn(text, self._sent)
        live.responses.append([])
        self._change(Phase.WAITING, stepper)

    def edit(self, limits: Limits, names: Sequence[str], cap: int | None) -> None:
        """Sets other limits, and another budget for the waiting request. Raises `LoopError` if a value is not possible
        at this point; then nothing is changed."""
        stepper = self.stepper
        if names:
            stepper = stepper.with_limits(limits)
        if isinstance(stepper.waiting, Send) and stepper.request is not None:
            stepper = stepper.with_cap(cap)
        self._change(Phase.WAITING, stepper)
        if names:
            explicit = self._settings.explicit | set(names)
            self._settings = replace(self._settings, limits=limits, explicit=explicit)
            if self.recorder is not None:
                self.recorder.limits(self._settings)

    def edit_body(self, body: dict[str, Any]) -> None:
        """Replaces the body of the waiting request. Raises `LoopError` if the body is not a request of this format, or
        contains the key."""
        refuse_secrets(body, self.start.server)
        self._change(Phase.WAITING, self.stepper.with_body(body))

    async def wait_until_idle(self) -> None:
        """Waits until nothing is in progress."""
        while self.live.phase in BUSY:
            self._moved.clear()
            await self._moved.wait()

    async def close(self) -> None:
        """Closes the connection and the recording; an unfinished turn must be cancelled first."""
        if self._source is not None:
            await self._source.aclose()
            self._source = None
        if self.recorder is not None:
            self.recorder.close()

    async def _send(self, request: LiveRequest | None) -> None:
        live, send = self.live, self.live.pending
        if not isinstance(send, Send):
            return
        try:
            if request is None:
                raise CallerError(live.stepper.unsendable)
            refuse_secrets(request.body, self.start.server)
            source, responses = self._connect(), live.responses[-1]
            self._recording()  # only now, so that a request that cannot be sent leaves no empty file
            # more answers than before: the cancelled one had begun
            count, self._edited = len(responses), live.stepper.edits
            self._change(Phase.ASKING)
            event = await source.respond(send, live.stepper.last.turn, request)
        except LoopError as why:  # a proxy that is not an address, credentials that are not there, a file that is
            live.problem = str(why)
            self._change(Phase.WAITING)
            return
        self._sent = source.request_count
        live.answer = None
        if isinstance(event, Cancel):
            await self._disconnect()
            if len(responses) > count:
                self._end_cancelled(responses[-1])
            else:
                self._change(Phase.WAITING, live.stepper.after_event(Cancel(), self._sent))
        # No answer or an error status: the operator may send it again.
        elif (responses[-1].status is None or responses[-1].status >= 400) and not live.running:
            live.failed_answer = responses[-1]
            self._change(Phase.WAITING)
        else:
            self._change(Phase.WAITING, live.stepper.after_answer(responses[-1], self._sent))

    def _end_cancelled(self, answer: LiveResponse) -> None:
        """Ends the turn with an answer that the operator cancelled."""
        self._recording().record_cancel(answer.ask.number, answered=False)
        # The operator cut it, so its end is no evidence about the provider.
        self.live.responses[-1][-1] = replace(answer, judgement=cancelled_answer(answer.judgement))
        self._change(Phase.WAITING, self.live.stepper.after_answer(answer, self._sent, cancelled=True))

    async def _run_tools(self, effect: RunTools) -> None:
        source = self._connect()
        self._change(Phase.RUNNING)
        event = await source.run_tools(effect, self.stepper.last.turn)
        if isinstance(event, ToolResults):
            for verdict, whence in self.answers.last_batch:
                call = verdict.call
                note = f"{call.name or 'a call'}{f' ({call.id})' if call.id else ''}: {whence}"
                self._recording().note(note, self._sent - 1)
        else:
            await self._disconnect()
            self._recording().record_cancel(self._sent - 1, answered=True)
        self._change(Phase.WAITING, self.stepper.after_event(event, self._sent))

    def _finish(self) -> None:
        if self.recorder is not None:
            self.recorder.write_end(self.stepper.last.turn.terminal or "")
        self._change(Phase.OVER)

    def _change(self, phase: Phase, stepper: Stepper | None = None) -> None:
        self.live.phase = phase
        self._moved.set()
        if stepper is not None:
            self.live.stepper = stepper
        self._changed()

    def _connect(self) -> AsyncLive:
        if self._source is None:
            from loop_core.client.transport import AsyncLive

            self._source = AsyncLive(self.start.server, self, self.answers, self._line, redact.body)
            self._source.request_count = self._sent
        return self._source

    async def _disconnect(self) -> None:
        """Closes the source. A cancelled source stays cancelled, so a further request needs a new one."""
        source, self._source = self._source, None
        if source is not None:
            await source.aclose()

    def on_request(self, ask: LiveRequest) -> None:
        """A request is sent."""
        self._recording().on_request(ask)
        if self._edited:
            self._recording().note(f"edited by the operator: {' and '.join(self._edited)}", ask.number)
        self.live.answer = ArrivingAnswer(ask.request.api, ask.number, self.start.server.secrets)
        self.live.heard_at = monotonic()
        self._change(Phase.ASKING)

    def on_head(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of its answer arrived."""
        self._recording().on_head(number, status, headers)
        self.live.heard_at = monotonic()
        if self.live.answer is not None:
            self.live.answer.take_head(status, headers)
        self._change(Phase.STREAMING)

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        """A piece of the answer arrived."""
        self._recording().on_data(number, data, ms)
        self.live.heard_at = monotonic()
        if self.live.answer is not None:
            self.live.answer.take_data(data, ms)

    def on_end(self, answer: LiveResponse) -> None:
        """The answer ended."""
        self._recording().on_end(answer)
        self.live.responses[-1].append(answer)

    def on_wait(self, number: int, seconds: float) -> None:
        """The same request will be sent again after this time."""
        self._recording().on_wait(number, seconds)
        self.live.until = monotonic() + seconds
        self._change(Phase.RETRYING)

    def on_tools(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """The calls were answered."""
        self._recording().on_tools(number, results)
