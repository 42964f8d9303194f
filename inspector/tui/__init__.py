"""The app: screens and widgets over the lines that `report.lines` makes. Nothing here decides what is said."""

import os

from inspector.pause import without_collector

# Read when Textual is imported: keys are answered sooner, and for no more CPU.
os.environ.setdefault("TEXTUAL_FPS", "120")


@without_collector
def _import_textual() -> None:
    """Its modules stay: looking through them for rubbish meanwhile takes a tenth of the time to the first frame."""
    import textual.app
    import textual.containers
    import textual.scroll_view  # noqa: F401


_import_textual()
