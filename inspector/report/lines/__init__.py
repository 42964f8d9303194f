"""Pure functions that format values as lines of spans, for the screens and the reports; no Textual, Rich or files."""
