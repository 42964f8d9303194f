"""The document as one HTML page: no script, nothing loaded, headings and tables that a screen reader can walk.

Every text is escaped, and a content-security policy forbids what an oversight might let through.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from inspector.export.blocks import Block, Heading, Items, Quote, Said, Table
from inspector.report.inert import inert

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fdfdfb; --dim: #5c6773; --rule: #d5dae0;
  --quote: #f1f3f5; --bad: #a1190f; --warn: #7a4f00; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde3ea; --paper: #14181d; --dim: #98a3af; --rule: #333c46;
  --quote: #1e242b; --bad: #ff8f85; --warn: #f0c05a; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; border-top: 1px solid var(--rule);
  padding-top: 1rem; } h3 { font-size: 1rem; }
.error { color: var(--bad); font-weight: 600; } .warning { color: var(--warn); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .875rem; }
th, td { border-bottom: 1px solid var(--rule); padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: 600; }
figure { margin: .8rem 0; } figcaption { color: var(--dim); font-size: .8rem; }
pre { margin: .2rem 0; padding: .7rem .9rem; background: var(--quote); white-space: pre-wrap; overflow-wrap: anywhere;
  font: .875rem/1.5 ui-monospace, monospace; }
"""


def html(blocks: Iterable[Block], title: str = "Loop Inspector report") -> str:
    """The page."""
    body = "\n".join(_block(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _text(text: str) -> str:
    return escape(inert(text), quote=True)


def _cells(tag: str, row: Iterable[str]) -> str:
    return "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in row)


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_text(block.text)}</h{block.level}>"
    if isinstance(block, Said):
        return f'<p class="{block.grave.value}">{_text(block.text)}</p>'
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{_text(text)}</li>' for text in block.texts)}</ul>"
    if isinstance(block, Table):
        rows = "".join(f"<tr>{_cells('td', row)}</tr>" for row in block.rows)
        return (f'<div class="wide"><table><thead><tr>{_cells("th", block.head)}</tr></thead>'
                f"<tbody>{rows}</tbody></table></div>")
    assert isinstance(block, Quote)  # noqa: S101 - the last of the union
    # The line break after <pre> is swallowed by the parser, so that one of the text's own survives.
    return f"<figure><figcaption>{_text(block.label)}</figcaption><pre>\n{_text(block.text)}</pre></figure>"
