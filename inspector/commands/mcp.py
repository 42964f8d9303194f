"""The tools for agents over the Model Context Protocol, on standard input and output; alone knows the SDK."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from inspector import __version__, commands
from inspector.check import agent_tools
from loop_core.errors import LoopError

TOOLS: tuple[Callable[..., dict[str, Any]], ...] = (
    agent_tools.list_sessions, agent_tools.why_did_it_stop, agent_tools.findings, agent_tools.response,
    agent_tools.what_if,
)
"""What can be asked; names, arguments and descriptions are the functions' own."""


@click.command(context_settings=commands.CONTEXT)
def mcp() -> None:
    """Serves recorded sessions to agents over MCP, on standard input and output; read-only, masked."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        click.echo("inspector: this needs the extra `mcp`: pip install '.[mcp]'", err=True)
        sys.exit(commands.UNREADABLE)

    def told(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """The tool, whose expected failures are one line."""

        @functools.wraps(tool)
        def run(*arguments: Any, **named: Any) -> dict[str, Any]:
            try:
                return tool(*arguments, **named)
            except LoopError as why:
                raise ToolError(commands.without_credentials(str(why))) from None
            except (OSError, ValueError, RecursionError, MemoryError) as why:
                raise ToolError(f"cannot be done: {type(why).__name__}") from None

        return run

    server = MCPServer(
        "loop-inspector", version=__version__, log_level="ERROR",
        instructions="Says why turns of LLM agents stopped, from recorded sessions. Begin with list_sessions or with a "
                     "path, then why_did_it_stop. Nothing is written, and no provider is asked.")
    for tool in TOOLS:
        server.add_tool(told(tool), description=(tool.__doc__ or "").split("\n\n")[0])
    server.run("stdio")
