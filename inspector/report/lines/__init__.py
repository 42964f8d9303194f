"""Pure formatting for the screens and the linear reports: values in, lines of spans out.

One module a view. Nothing here knows Textual or Rich, opens a file or keeps state beyond a sheet's own lines.
"""
