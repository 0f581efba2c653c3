"""What the tests of the memory tool share: calling it as the SDK's runner does."""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import ToolError

from deermem.integrations.anthropic import DeerMemMemoryTool


def call(tool: DeerMemMemoryTool, command: str, path: str | None = None, **parameters: Any) -> str:
    """Returns what the model is told, of an error too."""
    given = {"command": command, **parameters} | ({} if path is None else {"path": path})
    try:
        answer = tool.call(given)
    except ToolError as error:
        answer = error.content
    assert isinstance(answer, str)
    return answer


def text_of(tool: DeerMemMemoryTool, path: str) -> str | None:
    """Returns the text of a file as a view shows it, `None` where there is none."""
    answer = call(tool, "view", path)
    header, _, lines = answer.partition("\n")
    if header != f"Here's the content of {path} with line numbers:":
        return None
    return "\n".join(line.split("\t", 1)[1] for line in lines.split("\n"))


def listed(tool: DeerMemMemoryTool, path: str = "/memories") -> list[str]:
    """Returns the paths of a listing, without the directory itself."""
    return [line.split("\t")[1] for line in call(tool, "view", path).split("\n")[2:]]
