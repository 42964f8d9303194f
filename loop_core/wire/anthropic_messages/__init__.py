"""Anthropic Messages: `POST /v1/messages`, also as hosted on Vertex."""

from __future__ import annotations

from loop_core.wire.anthropic_messages.decode import Decoder, handovers
from loop_core.wire.anthropic_messages.encode import encode
from loop_core.wire.anthropic_messages.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.anthropic_messages.table import API, LOSES, PATHS, READS, STOP_REASONS, STREAM_READS, recognises
from loop_core.wire.format import VERSION, Format, Home, Prefill

FORMAT = Format(
    id=API,
    decoder=Decoder,
    stop_reasons=STOP_REASONS,
    paths=PATHS,
    recognises=recognises,
    reads=READS,
    stream_reads=STREAM_READS,
    read_request=read_request,
    encode=encode,
    loses=LOSES,
    encode_request=encode_request,
    asking_loses=ASKING_LOSES,
    path=lambda request: "/messages",
    home=Home("https://api.anthropic.com", "/v1", VERSION, "x-api-key", (("anthropic-version", "2023-06-01"),)),
    provider="anthropic",
    word_paths=(("stop_reason",),),
    prefills=frozenset({Prefill.PLAIN}),
    cached_apart=True,
    handovers=handovers,
)
