"""`inspector run`: what was typed -> a run that is over. Owns the defaults: whose key, which file, which settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from inspector.config.places import data_folder
from inspector.live.keys import key_for
from inspector.live.opening import json_file, request_of
from inspector.live.run import Ran, run_live
from inspector.live.tools import tools_of
from inspector.settings import Settings, parse_assignments, settings_of
from loop_core.address import Server, speaker
from loop_core.outgoing import reduced
from loop_core.tools import Toolbox


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
) -> Ran:
    """Runs one turn as the command line asks for it.

    Raises:
        LoopError: something that was typed cannot be used; nothing was sent then.
    """
    settings = settings_of(parse_assignments(assignments), settings)
    if api == "bedrock_converse" and not base:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        base = f"https://bedrock-runtime.{region}.amazonaws.com" if region else ""
    server = Server(api, base, profile=profile)
    owner = speaker(replace(server, profile=None), model)
    by_address = bool(owner.evidence) and owner.evidence[0].rule in ("profile.host", "profile.url")
    server = replace(server, key=key_for(owner.profile.name if by_address else "", os.environ, key_env))
    request = request_of(api, model, prompt, None if messages is None else json_file(messages, "--messages"), stream)
    toolbox = Toolbox()
    if tools is not None:
        declared, runs = tools_of(tools)
        request, toolbox = replace(request, tools=declared), Toolbox(runs)
    if reduce_schemas:
        request = reduced(request)
    return run_live(request, server, settings, toolbox, record or _new_file(api))


def _new_file(api: str) -> str:
    name = f"{datetime.now():%Y%m%d-%H%M%S-%f}-{api}.jsonl"
    return str(data_folder(os.environ) / "live" / name)
