"""OpenAI Responses, and the servers that imitate it."""

from __future__ import annotations

from loop_core.wire.format import ANY_PATH, Format, Home
from loop_core.wire.openai_responses.decode import Decoder
from loop_core.wire.openai_responses.encode import encode
from loop_core.wire.openai_responses.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.openai_responses.table import (
    API,
    LOSES,
    PATHS,
    READS,
    STOP_REASONS,
    STREAM_READS,
    is_chained,
    recognises,
)

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
    path=lambda request: "/responses",
    home=Home("https://api.openai.com", "/v1", ANY_PATH, "authorization"),
    provider="openai",
    history="input",
    chained=is_chained,
    joints={"reasoning": "\n\n"},
)
