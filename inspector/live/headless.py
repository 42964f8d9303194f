"""`inspector run`: what was typed -> what a live turn begins with. Owns the defaults: whose key, which file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from inspector.config.places import data_folder
from inspector.live.answers import Answers
from inspector.live.keys import key_for, secrets_of
from inspector.live.opening import json_file, request_of
from inspector.live.recorded import results_of
from inspector.live.run import Ran, planned, run_live
from inspector.live.tools import tools_of
from inspector.settings import Settings, live_limits, parse_assignments, settings_of
from loop_core import frozen
from loop_core.address import Server, refuse_plain, speaker
from loop_core.errors import CallerError
from loop_core.outgoing import reduced
from loop_core.tools import Toolbox
from loop_core.values import Request
from loop_core.wire import wire

if TYPE_CHECKING:
    from inspector.live.aws import AwsSigner


@dataclass(frozen=True, slots=True)
class Typed:
    """A live turn as it is asked for, on a command line or in a form."""

    api: str
    model: str
    base: str = ""
    profile: str | None = None
    prompt: str | None = None
    messages: str | None = None
    tools: str | None = None
    results: str | None = None
    """A recording whose tool results answer calls."""
    reduce_schemas: bool = False
    stream: bool = True
    assignments: Sequence[str] = ()
    key_env: str | None = None
    sign: str | None = None
    record: str | None = None
    insecure_http: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """What a live turn begins with."""

    request: Request
    server: Server
    settings: Settings
    answers: Answers
    path: str
    """Of the recording."""


def start(typed: Typed, settings: Settings) -> Start:
    """What was typed, read and checked; nothing is sent or written.

    Raises:
        LoopError: something cannot be used.
    """
    api, model, base = typed.api, typed.model, typed.base
    settings = settings_of(parse_assignments(typed.assignments), settings)
    settings = frozen.replace(settings, limits=live_limits(settings))
    server = server_of(api, model, base, typed.profile, typed.key_env, typed.sign, typed.insecure_http)
    refuse_plain(server)
    messages = None if typed.messages is None else json_file(typed.messages, "--messages")
    request = request_of(api, model, typed.prompt, messages, typed.stream)
    answers = Answers()
    if typed.tools is not None:
        declared, runs = tools_of(typed.tools)
        request, answers.toolbox = replace(request, tools=declared), Toolbox(runs)
    if typed.results is not None:
        answers.results = results_of(typed.results)
    if typed.reduce_schemas:
        request = reduced(request)
    request, _ = planned(request, server, settings)
    path = typed.record or _new_file(api)
    if os.path.exists(path) and os.path.getsize(path):
        raise CallerError(f"--record {path}: the file is there already; a recording begins a new one")
    return Start(request, server, settings, answers, path)


def ran(typed: Typed, settings: Settings) -> Ran:
    """Runs one turn to its end.

    Raises:
        LoopError: something that was typed cannot be used; nothing was sent then.
    """
    begun = start(typed, settings)
    return run_live(begun.request, begun.server, begun.settings, begun.answers, begun.path)


def server_of(
    api: str, model: str, base: str, profile: str | None, key_env: str | None, sign: str | None,
    insecure_http: Sequence[str] = (),
) -> Server:
    """Whom to ask, and with which key or signature."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    form = wire(api)
    at_home = bool(form.region) and not base
    if at_home and region:
        base = form.home.base.replace(form.region, region)
    server = Server(api, base, profile=profile, hidden=secrets_of(os.environ), insecure_http=tuple(insecure_http))
    owner = speaker(replace(server, profile=None), model)
    by_address = bool(owner.evidence) and owner.evidence[0].rule in ("profile.host", "profile.url")
    address = owner.profile.name if by_address else ""
    if sign is None:
        server = replace(server, key=key_for(address, os.environ, key_env))
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
        if (why.name or "").partition(".")[0] != "botocore":
            raise
        raise CallerError("no key for Bedrock: set AWS_BEARER_TOKEN_BEDROCK, or for AWS credentials install the extra "
                          "bedrock: pip install 'loop-inspector[bedrock]'") from None
    return AwsSigner(region)


def _new_file(api: str) -> str:
    name = f"{datetime.now():%Y%m%d-%H%M%S-%f}-{api}.jsonl"
    return str(data_folder(os.environ) / "live" / name)
