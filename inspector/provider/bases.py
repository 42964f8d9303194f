"""Base URLs of a running provider, as each SDK takes them, and how that is said."""

from __future__ import annotations

from loop_core.wire import FORMATS, wire


def bases(url: str) -> dict[str, str]:
    """Wire format -> base URL."""
    return {api: url + wire(api).serving.base for api in FORMATS}


def pointing(url: str) -> dict[str, str]:
    """Wire format -> Python that makes the client."""
    return {api: wire(api).serving.client.format(base=base) for api, base in bases(url).items()}
