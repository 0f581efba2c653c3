"""Facts are resources: Markdown documents of the fixed user and agent, and of nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from deermem import DeerMem
from tests.integrations.mcp.doors import Door, answer, serving


async def text_of(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert content.mime_type == "text/markdown"
    text: Any = content.text  # type: ignore[union-attr]
    return str(text)


def test_a_fact_is_a_resource_with_its_document(every_door: Door) -> None:
    async def look(client: Client) -> None:
        fact = (await answer(client, "memory_add", content="Likes tea", category="preference"))["fact"]
        (resource,) = (await client.list_resources()).resources
        assert resource.uri == f"memory://__default__/{fact['id']}"
        assert (resource.name, resource.title) == (fact["id"], "Likes tea")
        text = await text_of(client, resource.uri)
        assert text.startswith("---\nid: fact_")
        assert text.endswith("\n---\n\n# Likes tea\n\nLikes tea\n")
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "memory://__default__/{id}"

    every_door.use(look)


def test_a_document_is_the_one_on_the_disk(web: Door, other: DeerMem, root: Path) -> None:
    _, fact_id = other.create_fact("Likes tea\r\nand \u2028 coffee", user_id="alice")
    (file,) = root.rglob(f"{fact_id}.md")
    text = web.use(lambda client: text_of(client, f"memory://__default__/{fact_id}"))
    assert text.encode() == file.read_bytes()


def test_resources_come_in_parts(web: Door, other: DeerMem) -> None:
    content = {"facts": [{"content": f"fact number {number}"} for number in range(100)]}
    other.import_memory(content, user_id="alice")
    with DeerMem({"storage_path": str(web.root), "max_facts": 200}) as roomy:
        roomy.create_fact("one more", user_id="alice")

    async def collect(client: Client) -> None:
        first = await client.list_resources()
        assert len(first.resources) == 100
        second = await client.list_resources(cursor=first.next_cursor)
        assert (len(second.resources), second.next_cursor) == (1, None)
        with pytest.raises(MCPError, match="cursor is not valid"):
            await client.list_resources(cursor="../x")

    web.use(collect)


def test_what_is_not_there_or_not_allowed_is_not_found(root: Path, other: DeerMem) -> None:
    _, of_default = other.create_fact("default", user_id="alice")
    _, of_coder = other.create_fact("coder", agent_name="coder", user_id="alice")
    _, of_bob = other.create_fact("bob", user_id="bob")
    hidden = [
        f"memory://__default__/{of_default}",
        f"memory://coder/{of_bob}",
        f"memory://coder/{of_default}",
        "memory://coder/absent",
        "memory://coder/",
        "memory://coder/../__default__/x",
        f"memory://coder/{of_coder}/",
        f"memory://coder/{of_coder}?user=bob",
        f"memory://coder/{of_coder}\n",
        f"memory://CODER/{of_coder}",
        f"memory://alice@coder/{of_coder}",
        "file:///etc/passwd",
        "memory://coder/readme",
        "",
    ]

    async def try_all(client: Client) -> None:
        assert "coder" in await text_of(client, f"memory://coder/{of_coder}")
        for uri in hidden:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert (caught.value.code, caught.value.message) == (-32602, "There is no such resource.")

    with serving(other, agent="coder") as url:
        Door(root, url=url).use(try_all)
