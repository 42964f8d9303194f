"""What the bindings say, for people: one reading of them for the key bar, the help and the palette.

Further down: the command palette.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from pkgutil import walk_packages

from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

from loop_core.errors import CallerError

NAMES: Mapping[str, str] = {
    "space": "space", "backspace": "⌫", "enter": "enter", "escape": "esc", "pagedown": "PgDn", "pageup": "PgUp",
    "home": "Home", "end": "End", "down": "↓", "up": "↑", "left": "←", "right": "→",
    "colon": ":", "slash": "/", "question_mark": "?", "left_square_bracket": "[", "right_square_bracket": "]",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "f1": "F1", "plus": "+", "minus": "-", "equals_sign": "=",
    "comma": ",", "full_stop": ".", "less_than_sign": "<", "greater_than_sign": ">",
}

BAR = ("live.do", "live.run", "live.pause", "live.cancel", "live.edit", "live.body", "live.again", "live.say",
       "step.forward", "step.back", "event.next", "limits", "advice", "policies.open", "policies.next",
       "providers.open", "providers.next", "providers.more", "providers.each", "providers.policy", "filter", "search",
       "run.next", "tune",
       "mode", "continue", "breakpoints", "copy", "export", "turn.next", "command", "search.next", "copy.command",
       "wrap", "zoom")
"""The order in which the key bar offers bindings; others follow in the order of their screen."""
LAST = ("help", "back")
"""Bindings that the key bar keeps whatever the width, at its end."""


def name_of(key: str) -> str:
    """A key as it is written on a keyboard."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+')}"
    return NAMES.get(key, key)


def active_keys(screen: Screen[object]) -> list[tuple[str, ActiveBinding]]:
    """The bindings that work on a screen now, each action once with all its keys."""
    grouped: dict[tuple[str, str], tuple[list[str], ActiveBinding]] = {}
    for key, found in screen.active_bindings.items():
        if found.enabled and found.binding.id:
            keys, _ = grouped.setdefault((found.binding.id, found.binding.action), ([], found))
            keys.append(name_of(key))
    return [(" ".join(keys), found) for keys, found in grouped.values()]


def shown_keys(screen: Screen[object]) -> Iterator[tuple[str, ActiveBinding]]:
    """The bindings that the key bar offers, in their order, help and leaving last."""
    found = [(keys.split(" ")[0], each) for keys, each in active_keys(screen) if each.binding.show]
    yield from sorted(found, key=lambda pair: _place(pair[1].binding.id or ""))


def _place(name: str) -> int:
    if name in LAST:
        return len(BAR) + 1 + LAST.index(name)
    return BAR.index(name) if name in BAR else len(BAR)


def check_keys(keys: Mapping[str, str]) -> None:
    """Looks whether a configuration names bindings that exist, and keys for them.

    Raises:
        CallerError: it does not; the text says which.
    """
    if not keys:
        return
    from difflib import get_close_matches

    known = every_id()
    for name, given in keys.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise CallerError(f"keys.{name}: there is no such binding" + (f"; did you mean {near[0]}?" if near else ""))
        if not all(part.strip() for part in given.split(",")):
            raise CallerError(f"keys.{name}: {given!r} names no key; expected keys such as space,right")


def every_id() -> Mapping[str, Binding]:
    """Each binding of the app, its screens and its widgets, by its id: what a configuration may remap."""
    return {each.id: each for owner in owners() for each in declared_bindings(owner) if each.id}


def declared_bindings(owner: type) -> list[Binding]:
    """The bindings that a class itself declares."""
    return [each for each in vars(owner).get("BINDINGS", ()) if isinstance(each, Binding)]


def owners() -> list[type]:
    """Every class of the app that declares bindings, found in its modules: a new one is registered nowhere."""
    import inspector.tui

    modules = [import_module(each.name) for each in walk_packages(inspector.tui.__path__, "inspector.tui.")]
    found = [kind for module in modules for kind in vars(module).values()
             if isinstance(kind, type) and kind.__module__ == module.__name__ and "BINDINGS" in vars(kind)]
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


# -- The command palette ---------------------------------------------------------------------------------------------
# Every key of the screen by its description, derived from the bindings so it cannot drift.


class KeyCommands(Provider):
    """One command for each binding that works now."""

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for title, about, found in self._every():
            yield DiscoveryHit(title, partial(run_binding, self.app, found), text=title, help=about)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for title, about, found in self._every():
            score = max(matcher.match(title), matcher.match(about))
            if score > 0:
                act = partial(run_binding, self.app, found)
                yield Hit(score, matcher.highlight(title), act, text=title, help=about)

    def _every(self) -> Iterator[tuple[str, str, ActiveBinding]]:
        for keys, found in active_keys(self.screen):
            if found.binding.id != "palette":
                yield f"{found.binding.tooltip} ({keys})", found.binding.description, found


async def run_binding(app: App[object], found: ActiveBinding) -> None:
    """Does what the key would do."""
    await app.run_action(found.binding.action, found.node)
