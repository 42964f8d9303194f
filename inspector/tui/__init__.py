"""The app: screens and widgets that show the lines made in `inspector.report.lines`."""

import gc
import os
from contextlib import suppress

from inspector.sessions import without_collector

# Textual reads this variable when it is imported, so it is set first. With 120 frames a second instead of 60, a key
# has its effect up to 8 ms sooner; an idle screen draws nothing, so it costs no CPU.
os.environ.setdefault("TEXTUAL_FPS", "120")


@without_collector
def _import_textual() -> None:
    """Imports Textual without garbage collection, which would take a third of the time to the first frame; the modules
    live until the program ends."""
    import textual.app
    import textual.containers
    import textual.scroll_view  # noqa: F401

    gc.freeze()


_import_textual()


def forget_drawn_widgets() -> None:
    """Empties a private cache of Textual 8.2 that keeps the drawn lines of up to 1,024 closed widgets, up to 60 MB."""
    with suppress(ImportError, AttributeError):  # it is private, so another release may lack it
        from textual._styles_cache import StylesCache

        StylesCache.get_inner_outer.cache_clear()
