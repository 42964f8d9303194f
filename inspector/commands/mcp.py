"""`inspector mcp`: tools for agents over the Model Context Protocol on standard input and output; the only module that
imports the SDK."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from inspector import __version__, commands
from loop_core.errors import LoopError

INSTRUCTIONS = ("Says why turns of LLM agents stopped, from recorded sessions. Begin with list_sessions or with a "
                "path, then why_did_it_stop. Nothing is written, and no provider is asked.")


@click.command(context_settings=commands.CONTEXT)
def mcp() -> None:
    """Serves recorded sessions to agents over MCP, on standard input and output; read-only, masked."""
    try:
        import anyio
        from mcp import types
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
    except ImportError:
        click.echo("inspector: this needs the extra `mcp`: pip install '.[mcp]'", err=True)
        sys.exit(commands.UNREADABLE)
    from inspector.check.agent_tools import tool_descriptions

    tools = [types.Tool(name=name, description=text, input_schema=schema,
                        annotations=types.ToolAnnotations(read_only_hint=True))
             for name, text, schema in tool_descriptions()]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text, failed = await anyio.to_thread.run_sync(run_tool, params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    async def serve() -> None:
        server: Server[Any] = Server("loop-inspector", version=__version__, instructions=INSTRUCTIONS,
                                     on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())

    anyio.run(serve)


def run_tool(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """The answer of a tool as JSON, or its error in one line; and whether it failed."""
    from inspector.check.agent_tools import answer_of

    try:
        return json.dumps(answer_of(name, arguments), ensure_ascii=False), False
    except LoopError as why:
        return commands.without_credentials(" ".join(str(why).split())), True
    except Exception as why:  # noqa: BLE001 - an agent can do nothing with a traceback, which may hold what was read
        return f"{name}: cannot be done: {type(why).__name__}", True
