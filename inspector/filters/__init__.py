"""The filter language: one expression that finds steps, responses and breakpoints, in the app and headless alike.

`parse` (in `language`) reads an expression, `terms` says what each word looks at, `find` looks through a session.
"""

from __future__ import annotations

from inspector.filters.language import Filter, FilterError, hit_after, parse, responses, steps

__all__ = ["Filter", "FilterError", "hit_after", "parse", "responses", "steps"]
