"""Prints how often simulated first segments agree with a real model, by format and by what told where tokens end.

    LOOP_INSPECTOR_MODEL_URL=http://127.0.0.1:8099 python tests/benchmarks/reality.py

Then the streamed chat at prompts of several languages: what is called exact, what is ESTIMATED, and whether both hold.
Exit code 1 where fewer than 95 % of the predictions by chunks agree, or one that is called exact is not, or one lies
beyond its range; 2 where no model can be reached.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this checkout

from tests.local_model import BUDGETS, FORMATS, LONG, MIXED, PROMPTS, URL, Comparison, hold, unreachable

LEAST = 0.95


def main() -> int:
    """Asks the model for every prompt, format and budget, whole and streamed."""
    why = unreachable(URL)
    if why:
        print(why, file=sys.stderr)
        return 2
    print(f"{len(PROMPTS)} prompts, recorded at {LONG} tokens, predicted at {', '.join(map(str, BUDGETS))}")
    chunks: list[Comparison] = []
    for api in FORMATS:
        for stream in (True, False):
            held = [each for prompt in PROMPTS for each in hold(URL, api, prompt, stream=stream)]
            by_basis: dict[str, list[Comparison]] = defaultdict(list)
            for each in held:
                by_basis[each.basis].append(each)
            chunks += by_basis["chunks"]
            for basis, some in sorted(by_basis.items()):
                if some:
                    print(_line(f"{api}, {'stream' if stream else 'whole'}, {basis}", some), flush=True)
    kept = bool(chunks) and sum(each.same for each in chunks) >= LEAST * len(chunks)
    print(_line("all by chunks", chunks) if chunks else "no stream carried one token a chunk")
    mixed = _mixed_rows()
    print(_trust("all", mixed))
    return 0 if kept and all(each.holds for each in mixed) else 1


def _mixed_rows() -> list[Comparison]:
    found: list[Comparison] = []
    for language, prompt in MIXED.items():
        held = hold(URL, "openai_chat", prompt)
        print(_trust(language, held), flush=True)
        found += held
    return found


def _trust(name: str, held: list[Comparison]) -> str:
    exact = [each for each in held if each.apart is None]
    apart = [each for each in held if each.apart is not None]
    return (f"{name:<10} called exact {len(exact)}/{len(held)}, of them the same {sum(each.same for each in exact)}; "
            f"ESTIMATED {len(apart)}, of them within the range {sum(each.holds for each in apart)}")


def _line(name: str, held: list[Comparison]) -> str:
    same, stops = sum(each.same for each in held), sum(each.predicted.stop == each.seen.stop for each in held)
    apart = sorted(abs(len(each.predicted.text) - len(each.seen.text)) for each in held)
    return (f"{name:<42} reason and text {same}/{len(held)} ({same / len(held):.0%})   reason {stops}/{len(held)}   "
            f"median {apart[len(apart) // 2]} characters apart")


if __name__ == "__main__":
    sys.exit(main())
