"""A scripted provider: scenarios played to any client, in every wire format, with the faults that real servers have.

    from inspector.provider import serving

    with serving("cut-call") as provider:
        client = openai.OpenAI(base_url=provider.bases["openai_chat"], api_key="any")
        …
        assert [seen.kind for seen in provider.seen] == ["first", "repair", "first"]

    file ─reading─▶ Story ─place─▶ Place ─reply─▶ Draft ─faults─▶ Reply ─sending─▶ the client
"""

from inspector.provider.asked import Seen
from inspector.provider.reading import read, shipped
from inspector.provider.serving import Provider, serving
from inspector.provider.story import Answer, Kind, Placed, Story

__all__ = ["Answer", "Kind", "Placed", "Provider", "Seen", "Story", "read", "serving", "shipped"]
