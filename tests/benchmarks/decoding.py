"""Decoding a stream of 3,000 events: against splitting it and parsing its JSON, and against the SDKs' accumulators."""

from __future__ import annotations

import struct
from collections.abc import Callable
from zlib import crc32

from measure import Line, Report, Skip, best, milliseconds
from pydantic_core import from_json
from streams import STREAMS, gemini_array, gemini_array_line, gemini_partial_args

from loop_core import decode

ROUNDS = 30
PART = 4_096
"""Bytes of one chunk where a stream is fed as a connection gives it."""


def floor_sse(data: bytes) -> None:
    """Splits into events and parses each payload; nothing less could know what the stream says."""
    for event in data.split(b"\n\n"):
        payload = event.partition(b"data: ")[2]
        if payload and payload != b"[DONE]":
            from_json(payload)


def floor_lines(data: bytes) -> None:
    for line in data.split(b"\n"):
        if line:
            from_json(line)


def floor_frames(data: bytes) -> None:
    """Walks the frames, checks both CRCs, parses each payload."""
    at, unpack = 0, struct.Struct(">III").unpack_from
    while at < len(data):
        total, headers, prelude = unpack(data, at)
        if crc32(data[at : at + 8]) != prelude:
            raise ValueError("prelude")
        end = at + total
        if crc32(data[at : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            raise ValueError("message")
        from_json(data[at + 12 + headers : end - 4])
        at = end


def floor_array(data: bytes) -> None:
    """Splits where Google's printer parts two elements, which no text inside one can look like, and parses each."""
    for element in data[1:].removesuffix(b"\n]\n").split(b"\n,\r\n"):
        from_json(element)


def floor_array_line(data: bytes) -> None:
    """Splits before the first key of each element, puts back what the split took, and parses each."""
    first = b'{"candidates":'
    for element in data[1 + len(first) : -1].split(b"," + first):
        from_json(first + element)


Floor = Callable[[bytes], None]
CASES: dict[str, tuple[str, Callable[[], bytes], Floor]] = {
    **{api: (api, build, floor_sse) for api, build in STREAMS.items()},
    "bedrock_converse": ("bedrock_converse", STREAMS["bedrock_converse"], floor_frames),
    "ollama_chat": ("ollama_chat", STREAMS["ollama_chat"], floor_lines),
    "gemini, array": ("gemini_generate", gemini_array, floor_array),
    "gemini, array on a line": ("gemini_generate", gemini_array_line, floor_array_line),
    "gemini, partialArgs": ("gemini_generate", gemini_partial_args, floor_sse),
}
"""Each stream by name: its API, its bytes, and what decoding is held against."""


def report() -> Report:
    """Every stream whole and in parts, then the SDKs."""
    for name, (api, build, floor) in CASES.items():
        data = build()
        parts = [data[at : at + PART] for at in range(0, len(data), PART)]
        took = best({
            "floor": lambda floor=floor, data=data: floor(data),
            "whole": lambda api=api, data=data: decode(api, data),
            "parts": lambda api=api, parts=parts: decode(api, parts),
        }, ROUNDS)
        for way in ("whole", "parts"):
            told = name if way == "whole" else f"{name}, by {PART:,} bytes"
            yield Line(f"decode {told} ÷ split and parse", took[way] / took["floor"], most=2.5,
                       note=milliseconds(took[way], took["floor"]))
    yield from _sdk("openai", "openai_chat", openai_accumulator, 40)
    yield from _sdk("anthropic", "anthropic_messages", anthropic_accumulator, 15)


def _sdk(name: str, api: str, make: Callable[[bytes], Callable[[], object]], least: float) -> Report:
    title = f"{name} SDK's accumulator ÷ decode {api}"
    data = STREAMS[api]()
    try:
        run = make(data)
    except ImportError as why:
        yield Skip(title, f"not installed ({why}); pip install '.[sdks]'")
        return
    took = best({"sdk": run, "ours": lambda: decode(api, data)}, 5)
    yield Line(title, took["sdk"] / took["ours"], least=least, note=milliseconds(took["sdk"], took["ours"]))


def _transport(data: bytes) -> object:
    """An HTTP client of the kind that the SDKs use, which answers every request with `data`."""
    try:
        import httpx2 as http
    except ImportError:
        import httpx as http  # the SDKs' earlier releases

    def answer(request: object) -> object:
        return http.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    return http.Client(transport=http.MockTransport(answer))


def openai_accumulator(data: bytes) -> Callable[[], object]:
    """`client.chat.completions.stream(...)` to its final completion."""
    import openai

    client = openai.OpenAI(api_key="none", base_url="http://localhost/v1", http_client=_transport(data))

    def run() -> object:
        with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream:
            done = stream.get_final_completion()
        call = done.choices[0].message.tool_calls[0]
        return call.function.name, len(call.function.arguments)

    return run


def anthropic_accumulator(data: bytes) -> Callable[[], object]:
    """`client.messages.stream(...)` to its final message."""
    import anthropic

    client = anthropic.Anthropic(api_key="none", base_url="http://localhost", http_client=_transport(data))

    def run() -> object:
        with client.messages.stream(model="m", max_tokens=4_096, messages=[{"role": "user", "content": "x"}]) as stream:
            done = stream.get_final_message()
        return done.content[1].name, len(done.content[1].input["content"])

    return run
