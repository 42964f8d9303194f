"""Pure functions that format values as lines of spans, for the screens and the text reports.

There is one module for each view. None of them imports Textual or Rich, opens a file, or keeps state beyond the lines
of a sheet.
"""
