"""Every public module, class, function and method of the product says what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.scenes.rows import each_row

ROOT = Path(__file__).resolve().parents[1]
FILES = [path for package in ("loop_core", "inspector") for path in sorted((ROOT / package).rglob("*.py"))]
Described = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(node: ast.AST, above: str) -> Iterator[tuple[str, Described]]:
    """What stands under a node and may be used from outside; a property's setter is documented by the property."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            setter = any(isinstance(each, ast.Attribute) and each.attr == "setter" for each in child.decorator_list)
            if not child.name.startswith("_") and not setter:
                yield f"{above}.{child.name}", child
                if isinstance(child, ast.ClassDef):
                    yield from public(child, f"{above}.{child.name}")
        elif isinstance(child, (ast.If, ast.Try)):
            yield from public(child, above)


@each_row("path", FILES)
def test_every_public_name_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    silent = [name for name, node in [(path.stem, tree), *public(tree, path.stem)]
              if len((ast.get_docstring(node) or "").split()) < 2]
    assert not silent, f"without a docstring: {', '.join(silent)}"
