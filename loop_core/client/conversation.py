"""Runs a turn in one statement: `ask` a server, and continue the conversation from its answer.

The functions drive `run` (`loop_core.turn.loop`) over `Live` (`loop_core.client.transport`). httpx is imported when the
first request is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loop_core.client.address import Server, refuse_plain_http
from loop_core.client.exchange import Connection, Observer, Observers
from loop_core.client.outgoing import Messages, keeps_conversation, messages_of
from loop_core.client.streaming import ShowingSource, ShownText
from loop_core.client.threads import pieces_in_turn
from loop_core.errors import CallerError, check_kinds, check_methods
from loop_core.judge.gate import Verdict
from loop_core.turn.continuation import Method, split_half
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, arun, asteps, next_turn_request, run
from loop_core.turn.policy import Policy
from loop_core.turn.presets import preset
from loop_core.turn.state import Finish, ProviderResponse, Turn
from loop_core.turn.tools import Function, Toolbox, declare
from loop_core.turn.trace import Step, Trace
from loop_core.values import Message, ProviderError, Request, Tool, Usage

if TYPE_CHECKING:
    from loop_core.client.transport import AsyncLive

Prompt = str | Request | Messages
"""A prompt: a text of the user, a history, or a whole request, which may set any field of its API."""


def ask(
    server: Server,
    prompt: Prompt,
    *,
    tools: Sequence[Function] = (),
    limits: Limits | None = None,
    policy: Policy | str = "strict",
    max_tokens: int | None = None,
    line: Connection | None = None,
    observer: Observer | None = None,
) -> Answer:
    """Asks a server and runs the turn to its end, with tools, continuations of a cut answer, repair of a cut call and
    retries.

    Args:
        server: the server, with the key and the model. Its abilities are derived from its address.
        prompt: a text, a list of messages (`{"role": "user", "content": "…"}`, or `Message`), or a whole `Request`.
        tools: plain functions; the model receives their signatures and docstrings. A call is run only if it is
            complete, its response's stop reason authorises it and its arguments fit; calls are run in order.
        limits: the hard limits of the turn; None: the defaults of `Limits`.
        policy: how the loop decides, a `Policy` or the name of a preset.
        max_tokens: the output cap of each request; None: the server's own.
        line: timeouts, retries and the proxy, as a `Connection`.
        observer: an `Observer`, which receives everything that is sent and received.

    Returns:
        The answer, however it ended; `terminal` says how. A refused request or an unreachable server ends the turn too,
            without an exception.

    Raises:
        LoopError: the prompt, the policy or a tool cannot be used, the request cannot be sent in this format, or a key
            would leave as plain text. Then nothing was sent. A later request that cannot be sent, also because of
            any exception of a signer, ends the turn as unrecorded.
    """
    chat = _Chat.of(server, tools, limits, policy, max_tokens, line, observer)
    return chat.ask(1, chat.first_request(prompt))


async def aask(
    server: Server,
    prompt: Prompt,
    *,
    tools: Sequence[Function] = (),
    limits: Limits | None = None,
    policy: Policy | str = "strict",
    max_tokens: int | None = None,
    line: Connection | None = None,
    observer: Observer | None = None,
) -> Answer:
    """`ask` on an event loop. Tools run in a thread; a task that is cancelled ends its turn."""
    chat = _Chat.of(server, tools, limits, policy, max_tokens, line, observer)
    return await chat.aask(1, chat.first_request(prompt))


def stream(
    server: Server,
    prompt: Prompt,
    *,
    tools: Sequence[Function] = (),
    limits: Limits | None = None,
    policy: Policy | str = "strict",
    max_tokens: int | None = None,
    line: Connection | None = None,
    observer: Observer | None = None,
) -> Stream:
    """`ask` whose text can be read while it arrives: `for piece in stream(…)`. Tools run in a thread. After the last
    piece, `.answer` of the returned `Stream` (`loop_core.client.conversation`) is the `Answer`."""
    return Stream(astream(server, prompt, tools=tools, limits=limits, policy=policy, max_tokens=max_tokens, line=line,
                          observer=observer))


def astream(
    server: Server,
    prompt: Prompt,
    *,
    tools: Sequence[Function] = (),
    limits: Limits | None = None,
    policy: Policy | str = "strict",
    max_tokens: int | None = None,
    line: Connection | None = None,
    observer: Observer | None = None,
) -> AsyncStream:
    """`stream` on an event loop: `async for piece in astream(…)`, then `.answer`."""
    chat = _Chat.of(server, tools, limits, policy, max_tokens, line, observer)
    return AsyncStream(chat, 1, chat.first_request(prompt))


class Answer:
    """The result of a turn that has ended, from which the conversation can go on. `terminal` says how it ended, and
    `calls` which calls were held."""

    __slots__ = ("_chat", "_number", "trace")

    def __init__(self, trace: Trace, chat: _Chat, number: int) -> None:
        self.trace = trace
        """Every step of the turn: its requests, answers, decisions and tool runs."""
        self._chat, self._number = chat, number

    def __repr__(self) -> str:
        calls = len(self.calls)
        return f"<Answer {self.terminal}: {len(self.text):,} characters, {calls} call{'' if calls == 1 else 's'}>"

    @property
    def turn(self) -> Turn:
        """The turn at its end: state, spend, history, seams."""
        return self.trace.steps[-1].turn

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages of the conversation so far, for the prompt of a later `ask`. Calls without a result are left
        out, unless the policy is that of an agent which keeps them."""
        return next_turn_request(self.turn.request, self.turn, ()).messages

    @property
    def text(self) -> str:
        """The text of the last answer, its continuations joined; empty if it has none, or if the model asked for
        silence (`silent`). Half a surrogate pair at its end, which no file could hold, is left out."""
        return "" if self.silent is not None else split_half(self.turn.joined_answer().text)[0]

    @property
    def silent(self) -> str | None:
        """The word by which the model asked to show nothing to the user; None if it did not."""
        ends = (effect for effect in self.trace.steps[-1].effects if isinstance(effect, Finish))
        return next((end.silent for end in ends), None)

    @property
    def terminal(self) -> str:
        """How the turn ended: `completed`, or why it is not complete: `retry_limit`, `budget_exhausted`, `step_limit`,
        `no_progress`, `repair_failed`, `no_answer`, `interrupted`, `error`, `safety_blocked`,
        `context_window_exceeded`, `cancelled`, `unrecorded`, or `stuck` (under the policy of another agent)."""
        return self.turn.terminal or ""

    @property
    def notice(self) -> str | None:
        """A sentence for the user about how the turn ended, without the model's text; None if all is well."""
        return self.turn.notice

    @property
    def error(self) -> ProviderError | None:
        """The error that the provider reported instead of the last answer or in the middle of it; None if it reported
        none, for example because no connection was made."""
        return self.turn.evaluation.response.error if self.turn.evaluation is not None else None

    @property
    def usage(self) -> Usage | None:
        """The token counts of all responses together; None if none of them reported any."""
        counted = [event.response.usage for _, event in self._responses() if event.response.usage is not None]
        if not counted:
            return None
        return Usage(*(_sum([getattr(usage, name) for usage in counted]) for name in Usage.__match_args__))

    @property
    def calls(self) -> tuple[Verdict, ...]:
        """Every tool call of the turn, in order, each with the gate's verdict; only `ready` calls were run."""
        return tuple(verdict for step, _ in self._responses() if step.turn.evaluation for verdict in
                     step.turn.evaluation.verdicts)

    def _responses(self) -> list[tuple[Step, ProviderResponse]]:
        """The responses of the turn; of a background response that was fetched several times, only the last."""
        found: list[tuple[Step, ProviderResponse]] = []
        for step in self.trace.steps:
            if isinstance(step.event, ProviderResponse):
                if found and step.turn.last_send is not None and step.turn.last_send.method is Method.POLL:
                    found.pop()
                found.append((step, step.event))
        return found

    def ask(self, prompt: str | Messages) -> Answer:
        """Runs the next turn of the conversation with the same server, tools, limits and policy.

        Raises:
            LoopError: for the same reasons as `loop_core.ask`.
        """
        return self._chat.ask(self._number + 1, self._next(prompt))

    async def aask(self, prompt: str | Messages) -> Answer:
        """`ask` on an event loop."""
        return await self._chat.aask(self._number + 1, self._next(prompt))

    def stream(self, prompt: str | Messages) -> Stream:
        """`ask` whose text can be read while it arrives."""
        return Stream(self.astream(prompt))

    def astream(self, prompt: str | Messages) -> AsyncStream:
        """`stream` on an event loop."""
        return AsyncStream(self._chat, self._number + 1, self._next(prompt))

    def _next(self, prompt: str | Messages) -> Request:
        request = self.turn.request
        if keeps_conversation(request):
            raise CallerError("the server keeps this conversation and would get the history twice: expected "
                              "ask(…) with a Request of the new messages alone")
        return next_turn_request(request, self.turn, messages_of(prompt))


class AsyncStream:
    """The text of a turn in pieces that can be shown at once. `answer` holds the result when the turn is over. A stream
    can be read once.

    Yielded text is never withdrawn: the text of a continuation is yielded once its seam is decided. The joined pieces
    end with `answer.text`. The text that the model wrote before its tools ran, or replaced later, may come before it,
    each followed by a blank line. To end the turn when you stop reading, use the object as a context or call `aclose`;
    dropping the stream ends it too. `answer` is `cancelled` then, and its text is what had arrived, which may be more
    than was read; the conversation can go on from it.
    """

    def __init__(self, chat: _Chat, number: int, request: Request) -> None:
        self._answers: list[Answer] = []  # the answer, once the turn is over
        self._pieces = _text_pieces(chat, number, request, self._answers)

    @property
    def answer(self) -> Answer:
        """The whole answer, or what had arrived when the stream was closed.

        Raises:
            CallerError: the stream was neither read to its end nor closed, or nothing of it was read.
        """
        if not self._answers:
            raise CallerError("there is no answer yet: the stream has not been read to its end, and was not closed "
                              "while it was read")
        return self._answers[0]

    def __aiter__(self) -> AsyncIterator[str]:
        return self._pieces

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the turn if it is still running."""
        await self._pieces.aclose()


# A function, not a method: a generator that refers to its stream would not be freed and closed when the caller drops
# both.
async def _text_pieces(chat: _Chat, number: int, request: Request, answers: list[Answer]) -> AsyncGenerator[str, None]:
    """The text of a turn in pieces; its answer is added to `answers`."""
    queue = asyncio.Queue[str | None]()
    shown_text = ShownText(chat.server.api, chat.server.secrets, chat.plan.policy, queue.put_nowait)
    sources: list[ShowingSource] = []
    steps: list[Step] = []

    async def drive() -> None:
        try:
            async with chat.async_source(shown_text) as live:
                sources.append(ShowingSource(live, shown_text))
                async for step in asteps(f"t{number}", request, sources[0], chat.plan):
                    steps.append(step)
            answer = Answer(Trace(tuple(steps)), chat, number)
            answers.append(answer)
            shown_text.finish(answer.turn, answer.silent)
        finally:
            queue.put_nowait(None)  # after an error too, or the reader would wait forever

    task = asyncio.ensure_future(drive())
    try:
        while (piece := await queue.get()) is not None:
            yield piece
        await task
    finally:
        # A caller that stops reading ends the turn; its connection is closed before the caller goes on. The machine
        # receives the cancellation, so that there is an answer with what has arrived.
        for source in sources:
            source.cancel()
        if not sources:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Stream:
    """`AsyncStream` for a program without an event loop. The turn runs only while it is read."""

    def __init__(self, pieces: AsyncStream) -> None:
        self._async = pieces
        self._pieces = pieces_in_turn(pieces._pieces)

    @property
    def answer(self) -> Answer:
        """The whole answer, or what had arrived when the stream was closed; see `AsyncStream.answer`."""
        return self._async.answer

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the turn if it is still running."""
        self._pieces.close()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Chat:
    """The server, tools and settings of a conversation."""

    server: Server
    tools: tuple[Tool, ...]
    toolbox: Toolbox
    plan: Plan
    max_tokens: int | None
    line: Connection | None
    observer: Observer | None

    @staticmethod
    def of(
        server: Server, tools: Sequence[Function], limits: Limits | None, policy: Policy | str, max_tokens: int | None,
        line: Connection | None, observer: Observer | None,
    ) -> _Chat:
        """The checked arguments of `ask`. Raises `CallerError` if an argument cannot be used."""
        chosen = preset(policy) if isinstance(policy, str) else policy
        check_kinds(("server", server, Server), ("policy", chosen, Policy), ("limits", limits or Limits(), Limits),
                    ("line", line or Connection(), Connection))
        check_methods("observer", observer or Observer(), Observer)
        refuse_plain_http(server)
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise CallerError(f"max_tokens: {max_tokens!r} is not a whole number from 1")
        declared, runs = declare(tools)
        return _Chat(server, declared, Toolbox(runs), Plan(limits or Limits(), chosen), max_tokens, line, observer)

    def first_request(self, prompt: Prompt) -> Request:
        """The first request. Raises `CallerError` if the prompt makes no request, or one of another API."""
        request = prompt if isinstance(prompt, Request) else Request(self.server.api, messages_of(prompt), stream=True)
        if request.api != self.server.api:
            raise CallerError(f"a request of {request.api} was given for a server of {self.server.api}")
        return replace(
            request, model=request.model or self.server.model, tools=(*request.tools, *self.tools),
            max_tokens=request.max_tokens if self.max_tokens is None else self.max_tokens,
        )

    def ask(self, number: int, request: Request) -> Answer:
        """Runs one turn."""
        from loop_core.client.transport import Live  # imported here: a program that only reads answers needs no httpx

        with Live(self.server, self.observer, self.toolbox, self.line) as source:
            return Answer(run(f"t{number}", request, source, self.plan), self, number)

    async def aask(self, number: int, request: Request) -> Answer:
        """Runs one turn on an event loop."""
        async with self.async_source() as source:
            return Answer(await arun(f"t{number}", request, source, self.plan), self, number)

    def async_source(self, *observers: Observer) -> AsyncLive:
        """A source on an event loop; `observers` receive its events too."""
        from loop_core.client.transport import AsyncLive

        every = [each for each in (self.observer, *observers) if each is not None]
        return AsyncLive(self.server, Observers(every) if every else None, self.toolbox, self.line)


def _sum(counts: Sequence[int | None]) -> int | None:
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if known_counts else None

