"""The provider's own lists as text: scenarios, faults, the tools of a scenario."""

from __future__ import annotations

from typing import Any

from inspector.provider.faults import FAULTS
from inspector.provider.reading import shipped
from inspector.provider.story import Story


def listed() -> str:
    """Every scenario that comes with the program, and every fault."""
    stories, width = shipped().values(), max(map(len, (*shipped(), *FAULTS)))
    lines = ["Scenarios", *(f"  {story.name:<{width}}  {story.story}" for story in stories), ""]
    lines += ["Faults", *(f"  {row.name:<{width}}  {row.does}" for row in FAULTS.values())]
    return "\n".join(lines) + "\n"


def tools_of(story: Story) -> list[dict[str, Any]]:
    """The tools of a scenario, each with its result, as `inspector run --tools` takes them."""
    return [{"name": each.tool.name, "description": each.tool.description, "parameters": each.tool.schema,
             "result": each.result} for each in story.tools]
