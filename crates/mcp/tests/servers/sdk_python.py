"""A server made with the official Python SDK. `sdk_python.py` speaks over stdin and stdout, `sdk_python.py PORT` over HTTP."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import Completion
from pydantic import BaseModel

server = MCPServer("sdk", instructions="A server of the Python SDK.")


class Sum(BaseModel):
    sum: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool()
async def work(context: Context) -> str:
    """Shows progress."""
    await context.report_progress(1, 2, "half")
    return "done"


@server.resource("note://{number}")
def note(number: str) -> str:
    """A note by its number."""
    return f"the text of note {number}"


@server.prompt()
def greet(who: str) -> str:
    """Greets."""
    return f"Say hello to {who}."


@server.completion()
async def complete(reference, argument, context):
    return Completion(values=[it for it in ["40", "41", "50"] if it.startswith(argument.value)])


if len(sys.argv) > 1:
    server.run(transport="streamable-http", port=int(sys.argv[1]))
else:
    server.run()
