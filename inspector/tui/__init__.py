"""The app: screens and widgets over the lines that `report.lines` makes. Nothing here decides what is said."""

import os

# Read when Textual is imported: keys are answered sooner, and for no more CPU.
os.environ.setdefault("TEXTUAL_FPS", "120")
