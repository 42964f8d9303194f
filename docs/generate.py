"""Writes the tables and diagrams of the documents from the engine's own tables.

    python docs/generate.py            rewrites what stands between the markers
    python docs/generate.py --check    changes nothing; exit code 1 where a document is stale

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; NAME is a key of `PARTS`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]  # the engine of this checkout, and the modules beside this file

import client_parts  # noqa: E402 - found by the line above
import parts  # noqa: E402 - likewise
import policies  # noqa: E402
import provider_parts  # noqa: E402 - likewise
import scripted_parts  # noqa: E402 - likewise

PARTS: Mapping[str, Callable[[], str]] = {
    "words": parts.words,
    "formats": parts.formats,
    "profile-words": parts.profile_words,
    "profiles": parts.profiles,
    "judge": parts.judge_rules,
    "endings": parts.endings,
    "marks": parts.call_marks,
    "errors": parts.error_marks,
    "machine": parts.machine,
    "transitions": parts.transitions,
    "limits": parts.limits,
    "guards": parts.guards,
    "terminals": parts.terminals,
    "methods": parts.methods,
    "seams": parts.seams,
    "policies": policies.policies,
    "who-runs": policies.who_runs,
    "events": parts.events,
    "metrics": parts.metrics,
    "gate": parts.gate,
    "held": parts.held,
    "filter-terms": parts.filter_words,
    "check-rules": parts.check_rules,
    "credential-forms": parts.credential_forms,
    "credential-names": parts.credential_names,
    "scenarios": provider_parts.scenarios,
    "libraries": provider_parts.libraries,
    "told-call-cut": provider_parts.call_cut,
    "told-text-cut": provider_parts.text_cut,
    "dialects": provider_parts.dialects,
    "scripted-scenarios": scripted_parts.scripted_scenarios,
    "faults": scripted_parts.faults,
    "clients": scripted_parts.clients,
    "reported": client_parts.reported,
    "report-versions": client_parts.report_versions,
    "reports": client_parts.reports,
}

_PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(text: str) -> str:
    """The document with every generated part as the engine has it now."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found['name']]()}\n{found[3]}", text)


def documents() -> list[Path]:
    """The documents that have generated parts."""
    return [path for path in sorted(DOCS.glob("*.md")) if _PART.search(path.read_text("utf-8"))]


def names_in(text: str) -> list[str]:
    """The generated parts that a document has, in order."""
    return [found["name"] for found in _PART.finditer(text)]


def stale() -> list[Path]:
    """The documents whose generated parts differ from the engine's tables."""
    return [path for path in documents() if rendered(path.read_text("utf-8")) != path.read_text("utf-8")]


def main(arguments: list[str]) -> int:
    """Rewrites the documents, or only says which are stale."""
    found = stale()
    for path in found:
        print(f"{path.name}: {'stale; run python docs/generate.py' if '--check' in arguments else 'written'}")
        if "--check" not in arguments:
            path.write_text(rendered(path.read_text("utf-8")), "utf-8")
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
