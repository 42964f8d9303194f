"""An engine for agent turns: reads any provider's answer, and decides, deterministically, what a loop does next.

    reading = read("openai_chat", chunks, request=body)     # why it stopped, and which calls may run
    answer = ask(Server("openai_chat", key=key, model="gpt-4o-mini"), "Count to five.")
    trace = run("t1", request, source)                      # a turn over a source of your own
    turn, effects = step(turn, event)                       # one move, for a loop of your own

`docs/embedding.md` shows each of them.

Every name of `__all__` is imported when it is first used. All of them cost 180 ms of CPU (the engine 57, asyncio 31,
httpx 93), where `import loop_core` costs 12: a program that reads a response, or shows a command's help, would pay the
rest for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loop_core.address import Server
    from loop_core.conversation import Answer, aask, ask, astream, stream
    from loop_core.errors import LoopError
    from loop_core.exchange import http_request
    from loop_core.gate import Verdict
    from loop_core.limits import Limits
    from loop_core.loop import Plan, arun, run
    from loop_core.machine import begin, step
    from loop_core.policy import Policy
    from loop_core.presets import preset
    from loop_core.reader import Reading, read
    from loop_core.tools import Toolbox, ToolError
    from loop_core.trace import Trace
    from loop_core.transport import AsyncLive, Live
    from loop_core.turn import RunTools, Send
    from loop_core.values import ChatResponse, Message, Request, Stop
    from loop_core.wire import (
        decode,
        decode_request,
        decode_response,
        decoder,
        encode_request,
        encode_response,
    )

_HOMES = {
    "Server": "address",
    "Answer": "conversation", "aask": "conversation", "ask": "conversation", "astream": "conversation",
    "stream": "conversation",
    "LoopError": "errors",
    "http_request": "exchange",
    "Verdict": "gate",
    "Limits": "limits",
    "Plan": "loop", "arun": "loop", "run": "loop",
    "begin": "machine", "step": "machine",
    "Policy": "policy",
    "preset": "presets",
    "Reading": "reader", "read": "reader",
    "ToolError": "tools", "Toolbox": "tools",
    "Trace": "trace",
    "AsyncLive": "transport", "Live": "transport",
    "RunTools": "turn", "Send": "turn",
    "ChatResponse": "values", "Message": "values", "Request": "values", "Stop": "values",
    "decode": "wire", "decode_request": "wire", "decode_response": "wire", "decoder": "wire",
    "encode_request": "wire", "encode_response": "wire",
}
"""Public name -> the module that holds it; the same as the imports above, which type checkers read."""

__all__ = [
    "Answer", "AsyncLive", "ChatResponse", "Limits", "Live", "LoopError", "Message", "Plan", "Policy", "Reading",
    "Request", "RunTools", "Send", "Server", "Stop", "ToolError", "Toolbox", "Trace", "Verdict", "aask", "arun",
    "ask", "astream", "begin", "decode", "decode_request", "decode_response", "decoder", "encode_request",
    "encode_response", "http_request", "preset", "read", "run", "step", "stream",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # found here from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
