"""An engine for agent turns: it reads any provider's response and decides, deterministically, what an agent loop does
next.

    reading = read("openai_chat", chunks, request=body)     # why it stopped, and which calls may run
    answer = ask(Server("openai_chat", key=key, model="gpt-4o-mini"), "Count to five.")
    trace = run("t1", request, source)                      # a turn over a source of your own
    turn, effects = step(turn, event)                       # one move, for a loop of your own

`docs/embedding.md` shows each of them.

Each name of `__all__` is imported at its first use. All of them take 180 ms of CPU time (the engine 57, asyncio 31,
httpx 93), `import loop_core` alone takes 12. A program that reads a response, or shows a command's help, needs only a
few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loop_core.client.address import Server
    from loop_core.client.conversation import Answer, aask, ask, astream, stream
    from loop_core.client.exchange import Connection, Observer, Retries, Timeouts
    from loop_core.client.outgoing import http_request
    from loop_core.client.transport import AsyncLive, Live
    from loop_core.errors import LoopError
    from loop_core.judge.gate import Verdict
    from loop_core.reader import Reading, read
    from loop_core.turn.limits import Limits
    from loop_core.turn.loop import Plan, arun, run
    from loop_core.turn.machine import begin, step
    from loop_core.turn.policy import Policy
    from loop_core.turn.presets import preset
    from loop_core.turn.state import RunTools, Send
    from loop_core.turn.tools import Toolbox, ToolError
    from loop_core.turn.trace import Trace
    from loop_core.values import ChatResponse, Message, Request, Stop
    from loop_core.wire import decode, decode_request, decode_response, decoder, encode_request, encode_response
else:  # not shown to type checkers, which would accept every name because of it
    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value  # `__getattr__` is called once for each name
        return value

_HOMES = {
    "Server": "client.address",
    "Answer": "client.conversation", "aask": "client.conversation", "ask": "client.conversation",
    "astream": "client.conversation", "stream": "client.conversation",
    "Connection": "client.exchange", "Observer": "client.exchange", "Retries": "client.exchange",
    "Timeouts": "client.exchange",
    "LoopError": "errors",
    "http_request": "client.outgoing",
    "Verdict": "judge.gate",
    "Limits": "turn.limits",
    "Plan": "turn.loop", "arun": "turn.loop", "run": "turn.loop",
    "begin": "turn.machine", "step": "turn.machine",
    "Policy": "turn.policy",
    "preset": "turn.presets",
    "Reading": "reader", "read": "reader",
    "ToolError": "turn.tools", "Toolbox": "turn.tools",
    "Trace": "turn.trace",
    "AsyncLive": "client.transport", "Live": "client.transport",
    "RunTools": "turn.state", "Send": "turn.state",
    "ChatResponse": "values", "Message": "values", "Request": "values", "Stop": "values",
    "decode": "wire", "decode_request": "wire", "decode_response": "wire", "decoder": "wire",
    "encode_request": "wire", "encode_response": "wire",
}
"""Public name -> its module, for lazy imports. It repeats the imports above, which only type checkers read."""

__all__ = [
    "Answer", "AsyncLive", "ChatResponse", "Connection", "Limits", "Live", "LoopError", "Message", "Observer",
    "Plan", "Policy", "Reading", "Request", "Retries", "RunTools", "Send", "Server", "Stop", "Timeouts",
    "ToolError", "Toolbox", "Trace", "Verdict", "aask", "arun", "ask", "astream", "begin", "decode",
    "decode_request", "decode_response", "decoder", "encode_request", "encode_response", "http_request", "preset",
    "read", "run", "step", "stream",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
