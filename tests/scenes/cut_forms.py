"""What clients put into their history for a call that was cut."""

from __future__ import annotations

CUT_FORMS = ('{"to": 10, "by', '{"to": 1', "", None, "{}", '{"to": 10}', '{"to": 10, "by": null}', '{"to": 1, "by": 1}',
             '{"INVALID_JSON": "{\\"to\\": 10, \\"by"}')
"""What clients put into their history for a call that was cut: as it came, emptied, shortened, or wrapped."""
