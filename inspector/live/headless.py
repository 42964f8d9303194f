"""`inspector run`: what was typed -> a run that is over. Owns the defaults: whose key, which file, which settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from inspector.config.places import data_folder
from inspector.live.keys import key_for, secrets_of
from inspector.live.opening import json_file, request_of
from inspector.live.run import Ran, run_live
from inspector.live.tools import tools_of
from inspector.settings import Settings, parse_assignments, settings_of
from loop_core.address import Server, speaker
from loop_core.errors import CallerError
from loop_core.outgoing import reduced
from loop_core.tools import Toolbox

if TYPE_CHECKING:
    from inspector.live.aws import AwsSigner


def ran(
    api: str,
    model: str,
    *,
    base: str,
    profile: str | None,
    prompt: str | None,
    messages: str | None,
    tools: str | None,
    reduce_schemas: bool,
    stream: bool,
    assignments: Sequence[str],
    settings: Settings,
    key_env: str | None,
    record: str | None,
    sign: str | None = None,
) -> Ran:
    """Runs one turn as the command line asks for it.

    Raises:
        LoopError: something that was typed cannot be used; nothing was sent then.
    """
    settings = settings_of(parse_assignments(assignments), settings)
    server = server_of(api, model, base, profile, key_env, sign)
    request = request_of(api, model, prompt, None if messages is None else json_file(messages, "--messages"), stream)
    toolbox = Toolbox()
    if tools is not None:
        declared, runs = tools_of(tools)
        request, toolbox = replace(request, tools=declared), Toolbox(runs)
    if reduce_schemas:
        request = reduced(request)
    return run_live(request, server, settings, toolbox, record or _new_file(api))


def server_of(
    api: str, model: str, base: str, profile: str | None, key_env: str | None, sign: str | None
) -> Server:
    """Whom to ask, and with which key or signature."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    at_home = api == "bedrock_converse" and not base
    if at_home and region:
        base = f"https://bedrock-runtime.{region}.amazonaws.com"
    server = Server(api, base, profile=profile, hidden=secrets_of(os.environ))
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
        server = replace(server, base=f"https://bedrock-runtime.{signer.region}.amazonaws.com")
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
