"""Reads the members that only mappings of WireMock have, in JSON (read as pairs) and in YAML (read as a cassette).

The request is a pattern that a request must match, and the body of the answer may be in base64, or in a separate file.
Source: WireMock's documentation, "Stubbing" and "Record and playback", and mappings that OpenTelemetry recorded.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions.transcripts.member_values import numbered_objects, object_of

PACKED = "base64Body"
"""The member with the body of an answer in base64."""
ELSEWHERE = "bodyFileName"
"""The member with the name of the file with the body of an answer."""


def asked_body(request: dict[str, Any]) -> tuple[str | int, ...]:
    """The path, in a request, of the pattern that requires a whole body; empty if there is none."""
    for number, pattern in numbered_objects(request.get("bodyPatterns")):
        # with `ignoreExtraElements`, the rest of the body was not recorded, such as its limits and tools
        if "equalToJson" in pattern and str(pattern.get("ignoreExtraElements")).lower() != "true":
            return "bodyPatterns", number, "equalToJson"
    return ()


def interaction(value: Any) -> Any:
    """A mapping with the members of the cassettes."""
    request, response = object_of(object_of(value).get("request")), object_of(object_of(value).get("response"))
    if not request or not response:
        return value
    asked: Any = request
    for key in asked_body(request):
        asked = asked[key]
    sent = {} if asked is request else {"body" if isinstance(asked, str) else "parsed_body": asked}
    packed, parsed = response.get(PACKED), response.get("jsonBody")
    body = {"string": response.get("body")} if packed is None else {"base64_string": packed}
    return {"request": {**request, "url": request.get("url") or request.get("urlPath"), **sent},
            "response": {**response, **({"body": body} if parsed is None else {"parsed_body": parsed})}}
