"""A compiled graph remembers across threads and users through the store, with and without an event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from deermem.integrations.langgraph import DeerMemStore


class State(TypedDict):
    said: str
    known: list[str]


def _namespace(config: RunnableConfig) -> tuple[str, ...]:
    return (config["configurable"]["user_id"], "memories")


def remember(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    known = store.search(_namespace(config), limit=100)
    store.put(_namespace(config), state["said"], {"content": state["said"]})
    return {"known": sorted(item.value["content"] for item in known)}


async def aremember(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    known = await store.asearch(_namespace(config), limit=100)
    await store.aput(_namespace(config), state["said"], {"content": state["said"]})
    return {"known": sorted(item.value["content"] for item in known)}


def graph_of(node: Any, store: DeerMemStore) -> Any:
    builder = StateGraph(State)
    builder.add_node("remember", node)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    return builder.compile(checkpointer=InMemorySaver(), store=store)


def config_of(thread: str, user: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "user_id": user}}


def test_what_one_thread_put_another_thread_of_the_same_user_knows(tmp_path: Path) -> None:
    with DeerMemStore(tmp_path) as store:
        graph = graph_of(remember, store)
        assert graph.invoke({"said": "drinks tea"}, config_of("1", "alice"))["known"] == []
        assert graph.invoke({"said": "likes rain"}, config_of("2", "alice"))["known"] == ["drinks tea"]
        assert graph.invoke({"said": "hi"}, config_of("3", "bob"))["known"] == []
    with DeerMemStore(tmp_path) as store:
        known = graph_of(remember, store).invoke({"said": "x"}, config_of("1", "alice"))["known"]
        assert known == ["drinks tea", "likes rain"]


def test_what_one_task_put_another_task_of_the_same_user_knows(tmp_path: Path) -> None:
    async def run() -> list[str]:
        with DeerMemStore(tmp_path) as store:
            graph = graph_of(aremember, store)
            await asyncio.gather(
                *[graph.ainvoke({"said": f"fact {n}"}, config_of(str(n), "alice")) for n in range(6)],
                *[graph.ainvoke({"said": f"other {n}"}, config_of(f"b{n}", "bob")) for n in range(3)],
            )
            final = await graph.ainvoke({"said": "last"}, config_of("7", "alice"))
            known: list[str] = final["known"]
            return known

    assert asyncio.run(run()) == [f"fact {number}" for number in range(6)]
