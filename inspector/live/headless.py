"""Builds a live turn from the options of `inspector run`, runs it to its end, and records it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inspector.config.settings import EDIT, Settings, live_limits, parse_assignments, settings_of
from inspector.live.answers import Answers, results_of
from inspector.live.inputs import json_file, key_for, request_of, secrets_of, tools_of
from inspector.live.recorder import LiveTurn, Recorder, RunMemory, new_recording, refuse_existing, replay_of_turns
from inspector.replay import Replay
from inspector.sessions import redact
from inspector.sessions.native import BY_US
from loop_core.client.address import Server, expected_profile, refuse_plain_http
from loop_core.client.mask import SHORTEST
from loop_core.client.outgoing import ability, body_of, with_reduced_tools
from loop_core.errors import CallerError
from loop_core.turn.loop import Plan, turn_steps
from loop_core.turn.state import Cancel, cancelled_answer
from loop_core.turn.tools import Toolbox, ToolRunner
from loop_core.turn.trace import Step, next_step
from loop_core.values import Request
from loop_core.wire import wire

if TYPE_CHECKING:
    from inspector.live.aws import AwsSigner
    from loop_core.client.exchange import Connection


EXITS: Mapping[str, int] = {
    "completed": 0,
    "retry_limit": 3, "budget_exhausted": 3, "no_progress": 3, "repair_failed": 3, "step_limit": 3, "no_answer": 3,
    "context_window_exceeded": 3, "stuck": 3, "unrecorded": 3,
    "safety_blocked": 4,
    "interrupted": 5,
    "error": 6,
    "cancelled": 130,  # 128 + SIGINT, as shells report an interrupt
}
"""Terminal reason -> exit code. The code 2 means wrong usage, as for all commands."""


@dataclass(frozen=True, slots=True)
class LiveResult:
    """The result of a finished run."""

    replay: Replay
    terminal: str
    failure: str | None = None
    """Why the recording stopped early; None if it is complete."""
    notice: str | None = None
    """The operator's notice about the turn's end; None if the turn ended well."""

    @property
    def exit(self) -> int:
        """The exit code."""
        return EXITS[self.terminal]


class _Observer(RunMemory, Recorder):
    """Records the run and keeps it in memory."""


def plan_turn(request: Request, server: Server, settings: Settings) -> tuple[Request, Plan]:
    """The first request under these settings, and the plan of the run. Raises `LoopError` if it cannot be sent in this
    format, or contains the key."""
    if settings.max_tokens is not None:
        request = replace(request, max_tokens=settings.max_tokens)
    chosen = expected_profile(server, request.model)
    # Raises before anything is sent, if it cannot be sent in this format.
    refuse_secrets(body_of(request, chosen.profile), server)
    return request, Plan(settings.limits, settings.belief, ability(chosen.profile, server.api), chosen.profile.name)


def run_live(
    request: Request, server: Server, settings: Settings, toolbox: ToolRunner, path: str, line: Connection | None = None
) -> LiveResult:
    """Runs one turn to its end and records it at `path`. Raises `LoopError` if the request cannot be sent in this
    format, or the recording cannot be begun. Nothing was sent then."""
    request, plan = plan_turn(request, server, settings)
    from loop_core.client.transport import Live

    with ExitStack() as stack:
        source = stack.enter_context(Live(server, None, toolbox, line, redact.body))
        # Only now, so that a turn that cannot be sent leaves no empty file.
        source.observer = observer = _Observer(
            path, title=f"{request.model}, live", provenance=f"recorded {BY_US}")
        stack.callback(observer.close)
        observer.settings(settings)
        steps: list[Step] = []
        try:
            for step in turn_steps("t1", request, source, plan):
                steps.append(step)  # noqa: PERF402  (the steps remain if an interrupt leaves the loop)
        except KeyboardInterrupt:
            if not steps:
                raise
            steps.append(next_step(steps[-1], Cancel()))
        ended = steps[-1].turn
        if ended.terminal == "unrecorded":
            observer.note(ended.notice or "")
        if ended.terminal == "cancelled" and observer.responses:
            last = observer.responses[-1]
            answered = any(step.response == last.ask.number for step in steps)
            observer.record_cancel(last.ask.number, answered=answered)
            if not answered:
                observer.responses[-1] = replace(last, judgement=cancelled_answer(last.judgement))
        observer.write_end(ended.terminal or "")
    notices = [*observer.notices, *([observer.failure] if observer.failure else [])]
    replay = replay_of_turns((LiveTurn(observer.responses, steps),), settings, path, notices, observer)
    return LiveResult(replay, ended.terminal or "", observer.failure, ended.notice)


def refuse_secrets(body: object, server: Server) -> None:
    """Raises `CallerError` if a request's body contains its own key."""
    text = json.dumps(body, ensure_ascii=False)
    if any(len(secret) >= SHORTEST and secret in text for secret in server.secrets):
        raise CallerError("the request contains the key that would authenticate it")


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of a live turn, from a command line or a form."""

    api: str
    model: str
    base: str = ""
    profile: str | None = None
    prompt: str | None = None
    messages: str | None = None
    tools: str | None = None
    results: str | None = None
    reduce_schemas: bool = False
    stream: bool = True
    assignments: Sequence[str] = ()
    key_env: str | None = None
    sign: str | None = None
    record: str | None = None
    insecure_http: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LiveStart:
    """The start values of a live turn."""

    request: Request
    server: Server
    settings: Settings
    answers: Answers
    path: str


def start(options: LiveOptions, settings: Settings) -> LiveStart:
    """The start values from checked options; sends and writes nothing. Raises `LoopError` if one cannot be used."""
    assignments = parse_assignments(options.assignments)
    idle = [name for name in assignments if name in ("profile", "simulate", "live") or name.startswith(EDIT)]
    if idle:
        raise CallerError(f"--set {idle[0]}: only a replay uses it"
                          f"{'; --profile says how the server speaks' if idle[0] == 'profile' else ''}")
    settings = settings_of(assignments, settings)
    settings = replace(settings, limits=live_limits(settings))
    server = server_of(options)
    refuse_plain_http(server)
    messages = None if options.messages is None else json_file(options.messages, "--messages")
    request = request_of(options.api, options.model, options.prompt, messages, options.stream)
    answers = Answers()
    if options.tools is not None:
        declared, runs = tools_of(options.tools)
        request, answers.toolbox = replace(request, tools=declared), Toolbox(runs)
    if options.results is not None:
        answers.results = results_of(options.results)
    if options.reduce_schemas:
        request = with_reduced_tools(request)
    request, _ = plan_turn(request, server, settings)
    path = options.record or new_recording(options.api)
    refuse_existing(path)
    return LiveStart(request, server, settings, answers, path)


def server_of(options: LiveOptions) -> Server:
    """The server of a live turn, with its key or signer."""
    # most SDKs raise the first error, boto3 raises the second
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    form, base = wire(options.api), options.base
    at_home = bool(form.region) and not base
    if at_home and region:
        base = form.home.base.replace(form.region, region)
    server = Server(options.api, base, profile=options.profile, hidden_words=secrets_of(os.environ),
                    insecure_http=tuple(options.insecure_http))
    # the server that the address shows, without the named profile
    owner = expected_profile(replace(server, profile=None), options.model)
    # A profile that the operator names describes the server's protocol, not its owner, and must not choose the key.
    by_address = bool(owner.evidence) and owner.evidence[0].rule in ("profile.host", "profile.url")
    address = owner.profile.name if by_address else ""
    if options.sign is None:
        server = replace(server, key=key_for(address, os.environ, options.key_env))
        if server.key or address != "bedrock":
            return server
    signer = _aws(region)
    if at_home and not region:
        if not signer.region:
            raise CallerError("no AWS region: set AWS_REGION, or name the host with --base-url")
        server = replace(server, base=form.home.base.replace(form.region, signer.region))
    return replace(server, sign=signer)


def _aws(region: str | None) -> AwsSigner:
    try:
        from inspector.live.aws import AwsSigner
    except ModuleNotFoundError as why:
        # A module that botocore itself lacks is a broken installation, not a missing extra.
        if (why.name or "").partition(".")[0] != "botocore":
            raise
        raise CallerError("no key for Bedrock: set AWS_BEARER_TOKEN_BEDROCK, or for AWS credentials install the extra "
                          "bedrock: pip install '.[bedrock]'") from None
    return AwsSigner(region)
