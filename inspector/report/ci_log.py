"""Texts for standard output and error, which may be the log of a CI server that takes some lines for commands."""

from __future__ import annotations

import re
from collections.abc import Mapping

NUMBER_SIGNS: Mapping[str, str] = {
    ".html": "&#35;", ".xml": "&#35;", ".json": "\\u0023", ".jsonl": "\\u0023", ".sh": "\\u0023", ".py": "\\x23",
}
"""Suffix of a file -> a spelling of `#` that means the same in it; in other files a blank is added. Shell scripts have
requests in JSON, Python files quoted texts."""


def without_ci_commands(text: str, suffix: str = "") -> str:
    """`text` without commands to the CI server that logs it: GitHub takes `##[name` anywhere for one and `::name` at
    the beginning of a line, Azure Pipelines `##vso[name`. `suffix`: that of a file with this text."""
    if "##" in text:
        sign = NUMBER_SIGNS.get(suffix, " #")
        text = re.sub(r"##(?=\w*\[)", lambda _: f"#{sign}", text)
    if "::" in text:  # a pattern that begins with a line break is found four times as fast as one that begins with ^
        text = re.sub(r"(\n[^\S\n]*:)(?=:)", r"\1 ", f"\n{text}")[1:]
    return text
