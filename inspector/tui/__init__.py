"""The app: screens and widgets that show the lines of `report.lines`. Nothing here decides what they say."""

import gc
import os

from inspector.sessions import without_collector

# Read when Textual is imported: keys are answered sooner, and for no more CPU.
os.environ.setdefault("TEXTUAL_FPS", "120")


@without_collector
def _import_textual() -> None:
    """Its modules stay to the end; looking through them for rubbish costs a third of the way to the first frame."""
    import textual.app
    import textual.containers
    import textual.scroll_view  # noqa: F401

    gc.freeze()


_import_textual()
