"""Whatever happens in whatever order, a search finds what a look at every stored fact finds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from deermem.model.changes import ChangeSet, Delta
from deermem.model.identity import FactId, Scope, UserId
from deermem.model.manifest import NO_MANIFEST
from deermem.search.indexer import Indexer
from deermem.search.substring import substring_search
from deermem.testing.retrieval_samples import HERE, OTHER_AGENT, OTHER_USER
from tests.search.store import Store, clearing, writing
from tests.search.watched import WatchedAdapter

SCOPES = st.sampled_from([HERE, OTHER_AGENT, OTHER_USER])
FACTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["tea", "coffee"]), min_size=1)
METHODS = ["upsert", "remove", "clear", "rebuild", "search"]


def fail() -> None:
    raise ConnectionError


class SearchMachine(RuleBasedStateMachine):
    """Commits here and elsewhere, tells late or never, breaks the adapter, loses its index."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.adapter = WatchedAdapter()
        self.untold: list[tuple[UserId, Delta]] = []

    @initialize(max_users=st.integers(1, 3))
    def start(self, max_users: int) -> None:
        self.indexer = Indexer(self.adapter, self.store.load, max_users=max_users)
        self.store.tell = self.indexer.committed

    @rule(scope=SCOPES, facts=FACTS)
    def write(self, scope: Scope, facts: dict[str, str]) -> None:
        self.store.put(scope, **facts)

    @rule(scope=SCOPES, fact_id=st.sampled_from("abc"))
    def delete(self, scope: Scope, fact_id: str) -> None:
        self.store.delete(scope, fact_id)

    @rule(scope=SCOPES)
    def clear(self, scope: Scope) -> None:
        self.store.apply(scope.user, clearing(scope.agent))

    @rule(user=st.sampled_from([HERE.user, OTHER_USER.user]))
    def clear_all(self, user: UserId) -> None:
        self.store.apply(user, ChangeSet(clear_all=True))

    @rule(scope=SCOPES, facts=FACTS)
    def write_elsewhere(self, scope: Scope, facts: dict[str, str]) -> None:
        self.store.put_elsewhere(scope, **facts)

    @rule(scope=SCOPES, facts=FACTS)
    def write_and_tell_later(self, scope: Scope, facts: dict[str, str]) -> None:
        self.store.commit(
            scope.user, writing(scope, **facts), lambda user, delta: self.untold.append((user, delta))
        )

    @precondition(lambda self: self.untold)
    @rule(data=st.data())
    def tell_late(self, data: st.DataObject) -> None:
        self.indexer.committed(*self.untold.pop(data.draw(st.integers(0, len(self.untold) - 1))))

    @rule(method=st.sampled_from(METHODS))
    def break_the_adapter(self, method: str) -> None:
        self.adapter.before[method] = fail

    @rule()
    def mend_the_adapter(self) -> None:
        self.adapter.before.clear()

    @rule(scope=SCOPES, fact_id=st.sampled_from("abc"), content=st.sampled_from(["tea", "coffee"]))
    def edit_by_hand_and_reload(self, scope: Scope, fact_id: str, content: str) -> None:
        manifest, facts = self.store.states.get(scope.user, (NO_MANIFEST, {}))
        key = (scope.agent, FactId(fact_id))
        if key in facts:
            edited = replace(facts[key], content=content, title=content)
            self.store.states[scope.user] = manifest, {**facts, key: edited}
            self.indexer.mark_stale(scope.user)

    @rule(scopes=st.lists(SCOPES, unique=True, min_size=1))
    def rebuild(self, scopes: list[Scope]) -> None:
        report = self.indexer.rebuild(scopes)
        assert report.indexed + report.failed == sum(len(self.store.load(scope).facts) for scope in scopes)
        assert bool(report.reason) == ("rebuild" in self.adapter.before)

    @rule(scopes=st.lists(SCOPES, unique=True, min_size=1), query=st.sampled_from(["tea", "coffee", "e"]))
    def search(self, scopes: list[Scope], query: str) -> None:
        found = self.indexer.search(query, scopes, top_k=1_000)
        expected = substring_search(map(self.store.load, scopes), query, 1_000)
        assert {id(hit.fact) for hit in found} == {id(hit.fact) for hit in expected}
        if not self.adapter.before:
            assert all(hit.match_type == "adapter" for hit in found)


TestSearch = SearchMachine.TestCase
