"""Starting the app on a live turn, and how it exits: by the end state of the turn."""

from __future__ import annotations

from inspector.config import Config
from inspector.live.headless import Start
from inspector.tui.app import LoopInspector
from inspector.tui.keys import check
from inspector.tui.opening import Reading


def run(start: Start, config: Config) -> int:
    """Opens the app on a turn whose first request waits; gives the exit code.

    Raises:
        LoopError: a theme or key binding that does not exist.
    """
    check(config.keys)
    app = LoopInspector(live=start, reading=Reading(settings=start.settings), plain=config.ascii, theme=config.theme,
                        keys=config.keys)
    app.run()
    return app.return_code or 0
