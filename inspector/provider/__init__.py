"""A scripted provider: an HTTP server that plays scenarios to any client, in every wire format, with the faults of real
servers.

    from inspector.provider import serving

    with serving("cut-call") as provider:
        client = openai.OpenAI(base_url=provider.bases["openai_chat"], api_key="any")
        …
        assert [seen.kind for seen in provider.seen] == ["first", "repair", "first"]

    file ─reading─▶ Story ─place─▶ Place ─reply─▶ Draft ─faults─▶ Reply ─sending─▶ the client
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.provider.connection import AnsweredRequest
    from inspector.provider.reading import all_stories, read
    from inspector.provider.scenarios import Intent, Kind, PlacedFault, Story
    from inspector.provider.server import Provider, serving
else:  # not shown to type checkers, which would accept every name because of it
    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

_HOMES = {
    "AnsweredRequest": "connection", "read": "reading", "all_stories": "reading", "Provider": "server",
    "serving": "server", "Intent": "scenarios", "Kind": "scenarios", "PlacedFault": "scenarios", "Story": "scenarios",
}
"""Public name -> its module, which is imported when the name is first used: the table of dialects needs neither a
server nor aiohttp and pydantic."""

# Written out, because type checkers do not evaluate a list made from `_HOMES`.
__all__ = ["AnsweredRequest", "Intent", "Kind", "PlacedFault", "Provider", "Story", "all_stories", "read", "serving"]
