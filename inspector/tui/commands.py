"""The command palette: every key of the screen by its description, derived from the bindings so it cannot drift."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.app import App
from textual.binding import ActiveBinding
from textual.command import DiscoveryHit, Hit, Hits, Provider

from inspector.tui.keys import active


class KeyCommands(Provider):
    """One command for each binding that works now."""

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for title, about, found in self._every():
            yield DiscoveryHit(title, partial(run, self.app, found), text=title, help=about)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for title, about, found in self._every():
            score = max(matcher.match(title), matcher.match(about))
            if score > 0:
                yield Hit(score, matcher.highlight(title), partial(run, self.app, found), text=title, help=about)

    def _every(self) -> Iterator[tuple[str, str, ActiveBinding]]:
        for keys, found in active(self.screen):
            if found.binding.id != "palette":
                yield f"{found.binding.tooltip} ({keys})", found.binding.description, found


async def run(app: App[object], found: ActiveBinding) -> None:
    """Does what the key would do."""
    await app.run_action(found.binding.action, found.node)
