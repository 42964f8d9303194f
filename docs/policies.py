"""The generated parts about policies: the contents of each preset, and its decisions about the same responses."""

from __future__ import annotations

from enum import StrEnum

from examples import POLICY_CASES, decided
from parts import code, docs_of, table

from loop_core.turn.policy import STRICT, Policy, Promotion
from loop_core.turn.presets import POLICIES


def policies() -> str:
    """The contents of `strict`, and the rows of each other preset that differ from it."""
    strict = _rows(STRICT)
    return "\n\n".join(
        f"### {policy.name}\n\n{policy.title}.\n\n" + table(("property", "value"), (
            row for row in _rows(policy) if policy is STRICT or row not in strict))
        for policy in POLICIES.values())


def _rows(policy: Policy) -> list[tuple[str, str]]:
    told = [f"{word.value} → {taken.value}" for word, taken in policy.reason_map.items()]
    rows = [
        ("reads the reason", policy.reads.value),
        ("table of native words", "; ".join(_words(policy)) or "that of the engine"),
        ("reads a word as another", "; ".join(told) or "no"),
        ("promotes to a tool call", "; ".join(_promotion(row) for row in policy.promotions) or "nothing more"),
        ("other signals than strict (text / calls that may not run / calls that may)", "; ".join(_leads(policy))),
        ("calls that may run", f"{policy.dispatch.value}: {_meaning(policy.dispatch)}"),
        ("a call that may not run", f"{policy.batch.value}: {_meaning(policy.batch)}"),
        ("a call that did not run", "leaves the history" if policy.strips else "stays in the history"),
        ("continues by", ", ".join(method.value for method in policy.methods) or "never"),
        ("role of the hint", "system, where the server allows it" if policy.system_hint else "user"),
        ("reads a missing reason at the cap as a cut", "yes" if policy.cap_evidence else "no"),
        ("seams", f"{policy.seam.value}: {_meaning(policy.seam)}"),
        ("missing guards", ", ".join(sorted(policy.lacks)) or "none"),
        ("follows", "; ".join(policy.cites)),
    ]
    if not policy.methods:
        rows = [row for row in rows if row[0] not in ("role of the hint", "seams", "missing guards")]
    return rows


def _leads(policy: Policy) -> list[str]:
    words: dict[str, list[str]] = {}
    for word, signals in policy.signals.items():
        if signals != STRICT.signals[word]:
            words.setdefault(" / ".join(signal.value for signal in signals), []).append(word.value)
    return [f"{', '.join(found)} → {leads}" for leads, found in words.items()] or ["none"]


def _words(policy: Policy) -> list[str]:
    listed: dict[str, list[str]] = {}
    for (api, raw), stop in policy.words.items():
        listed.setdefault(api, []).append(f"{code(raw)} → {stop.value}")
    for api, stop in policy.unlisted.items():
        listed.setdefault(api, []).append(f"any other → {stop.value}")
    return [f"{api}: {', '.join(rows)}" for api, rows in listed.items()]


def _promotion(row: Promotion) -> str:
    where = "any format" if row.api == "*" else row.api
    but = f" (but not {row.but})" if row.but != "-" else ""
    return f"{row.word.value} in {where}{but}, {'complete ones' if row.complete else 'any call'}: {row.source}"


def _meaning(member: StrEnum) -> str:
    said = docs_of(type(member)).get(member.name, "")
    return said[:1].lower() + said[1:].rstrip(".")


def who_runs() -> str:
    """The decisions of each preset about the same responses, found by running the machine."""
    return table(("the response", *(code(name) for name in POLICIES)), (
        (f"{case}, {code(raw) if raw else 'no reason'}", *(decided(policy, calls, raw) for policy in POLICIES.values()))
        for case, calls, raw in POLICY_CASES
    ))
