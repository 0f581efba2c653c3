"""What the how-to page tells a host to do works with a model, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import blocks
from tests.integrations.anthropic.messages_api import Model, served

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "use-the-claude-memory-tool.md"


def test_the_function_of_the_page_asks_a_model_that_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = next(block.code for block in blocks(PAGE.read_text("utf-8")) if block.language == "python")
    monkeypatch.chdir(tmp_path)
    page: dict[str, Any] = {}
    exec(compile(code, PAGE.name, "exec"), page)  # noqa: S102 - the page is ours
    for script, answer in (
        ([{"command": "create", "path": "/memories/a", "file_text": "tea\n"}], "File created successfully"),
        ([{"command": "view", "path": "/memories/a"}], "Here's the content of /memories/a"),
    ):
        model = Model(script)
        with served(model) as url:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
            monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            assert page["ask"]("alice", "What do I like to drink?") == "Done."
        assert model.results[0][0][0].startswith(answer)
    page["manager"].close()
