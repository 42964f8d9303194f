"""Pure formatting for the screens and the linear reports: values in, lines of spans out.

There is one module for each view. None of them imports Textual or Rich, opens a file, or keeps state beyond the lines
of a sheet.
"""
