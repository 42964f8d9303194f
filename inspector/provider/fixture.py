"""A pytest fixture for your own tests: `pytest_plugins = ["inspector.provider.fixture"]` in a conftest.py.

    def test_my_agent_goes_on(scripted_provider):
        provider = scripted_provider("cut-twice", pace=0)
        assert my_agent(base_url=provider.bases["openai_chat"]) == provider.stories[0].answers[0].text
        assert [seen.kind for seen in provider.seen] == ["first", "continuation", "continuation"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from inspector.provider.server import Provider, serving

ProviderStarter = Callable[..., Provider]
"""A function with the arguments of `serving` that starts a provider."""


@pytest.fixture
def scripted_provider() -> Iterator[ProviderStarter]:
    """Starts providers that end with the test."""
    with ExitStack() as stack:
        yield lambda *scenarios, **options: stack.enter_context(serving(*scenarios, **options))
