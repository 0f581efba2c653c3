"""The rules of a storage for threads, other programs on the same root, settings, and the end."""

# ruff: noqa: D102 - the name of a test is its claim

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deermem.config import DeerMemConfig
from deermem.errors import (
    FactConflict,
    InvalidInputError,
    LockTimeout,
    MemoryConflictError,
    MemoryCorruptionError,
)
from deermem.maintenance.check import check_store
from deermem.maintenance.findings import Severity
from deermem.manager import DeerMem
from deermem.manager.opening import open_repository
from deermem.model.changes import ANYTHING, ChangeSet, Upsert
from deermem.model.fact import FactDraft
from deermem.model.identity import Scope
from deermem.repository import MemoryRepository
from deermem.testing.claims import allowed, refused, require
from deermem.testing.places import temporary_root, write_file
from deermem.testing.storage_samples import (
    FULL,
    HERE,
    OTHER_AGENT,
    OTHER_USER,
    RememberingIndex,
    StorageRules,
    bucket_of,
    contents,
    fact_file,
    make_draft,
    plain,
)

SECONDS = 30
ENOUGH_REVISIONS = 10
MOST_WRITES = 400


class SharingRules(StorageRules):
    """Says what several threads, storages and programs on one root see of each other."""

    def test_a_storage_that_is_opened_later_sees_everything(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, FULL)
            storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": "tea"}})
            before = storage.snapshot(HERE)
            storage.close()
            after = opened().snapshot(HERE)
        require((after.revision, after.facts) == (before.revision, before.facts), f"it sees {after.facts}")
        require(after.summaries == before.summaries, f"it sees {after.summaries}")

    def test_another_storage_on_the_root_sees_every_commit_at_once(self) -> None:
        with self._root() as opened:
            writer, reader = opened(), opened()
            for n in range(3):
                writer.upsert_fact(HERE, make_draft(f"f{n}"))
                found = len(reader.snapshot(HERE).facts)
                require(found == n + 1, f"after {n + 1} commits the other one sees {found} facts")
            writer.upsert_fact(HERE, make_draft("f0", "changed"), expected=1)
            require(contents(reader.snapshot(HERE))[0] == "changed", "the other one sees the old text")

    def test_the_files_are_those_of_a_plain_storage(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, FULL)
            storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": "tea"}})
            own, other = storage.snapshot(HERE), plain(storage).snapshot(HERE)
            require(own.facts == other.facts, f"MemoryRepository reads {other.facts}, not {own.facts}")
            require(own.manifest == other.manifest, f"MemoryRepository reads {other.manifest}")

    def test_what_a_plain_storage_wrote_is_read(self) -> None:
        with self._root() as opened:
            storage = opened()
            plain(storage).upsert_fact(HERE, FULL)
            found = storage.snapshot(HERE).facts
        require([fact.draft() for fact in found] == [FULL], f"it reads {found}")

    def test_what_another_program_commits_is_seen_at_once(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            storage.snapshot(HERE)
            plain(storage).upsert_fact(HERE, make_draft("x", "changed"), expected=1)
            found = contents(storage.snapshot(HERE))
            require(found == ["changed"], f"after another program's commit there is {found}")
            with refused(FactConflict, "an update at the revision before that"):
                storage.upsert_fact(HERE, make_draft("x", "late"), expected=1)

    def test_a_check_of_the_files_finds_nothing(self) -> None:
        with self._root() as opened:
            storage = opened()
            for scope in (HERE, OTHER_AGENT, OTHER_USER):
                storage.upsert_fact(scope, make_draft("x"))
                storage.upsert_fact(scope, make_draft("x", "changed"), expected=1)
            storage.clear(OTHER_AGENT)
            report = check_store(plain(storage))
        bad = [f"{each.kind} {each.path}" for each in report.findings if each.severity > Severity.NOTE]
        require(not bad, f"`deermem check` finds {bad}")

    def test_several_threads_and_storages_lose_no_fact(self) -> None:
        with self._root() as opened:
            shared = opened()
            storages = (shared, shared, opened())

            def write(worker: int) -> None:
                for n in range(8):
                    storages[worker].upsert_fact(HERE, make_draft(f"w{worker}-{n}"))

            _together(write, len(storages))
            found = opened().snapshot(HERE)
        require(len(found.facts) == found.revision == 24, f"24 writes leave {len(found.facts)} facts")

    def test_of_several_writers_at_one_revision_one_wins(self) -> None:
        with self._root() as opened:
            shared = opened()
            shared.upsert_fact(HERE, make_draft("x"))
            storages = (shared, shared, opened(), opened())

            def update(worker: int) -> bool:
                try:
                    storages[worker].upsert_fact(HERE, make_draft("x", f"of {worker}"), expected=1)
                except FactConflict:
                    return False
                return True

            won = _together(update, len(storages))
            found = contents(shared.snapshot(HERE))
        require(won.count(True) == 1, f"{won.count(True)} of 4 writers at one revision won")
        require(found == [f"of {won.index(True)}"], f"{won.index(True)} won, and there is {found}")

    def test_a_reader_beside_a_writer_sees_whole_commits(self) -> None:
        with self._root() as opened:
            writer, reader = opened(), opened()
            ended, enough = threading.Event(), threading.Event()

            def write() -> None:
                try:
                    for n in range(MOST_WRITES):
                        upserts = [
                            Upsert(HERE.agent, make_draft(each, f"state {n}"), ANYTHING) for each in "ab"
                        ]
                        writer.apply_changes(HERE.user.raw, ChangeSet(upserts=tuple(upserts)))
                        if enough.is_set():
                            break
                finally:
                    ended.set()

            def read() -> list[list[str]]:
                mixed: list[list[str]] = []
                seen: set[int] = set()
                while not ended.is_set():
                    found = reader.snapshot(HERE)
                    texts = contents(found)
                    if len(set(texts)) > 1 or len(texts) == 1:
                        mixed.append(texts)
                    seen.add(found.revision)
                    if len(seen) > ENOUGH_REVISIONS:
                        enough.set()
                return mixed

            with ThreadPoolExecutor(2) as pool:
                reading = pool.submit(read)
                pool.submit(write).result(SECONDS)
                mixed = reading.result(SECONDS)
        require(not mixed, f"a reader sees parts of two commits: {mixed[:3]}")

    def test_a_lock_that_is_held_too_long_is_a_time_out_that_writes_nothing(self) -> None:
        with self._root() as opened:
            storage = opened(lock_timeout=0.05)
            storage.upsert_fact(HERE, make_draft("x"))
            # One lock file is enough for the threads of one process, too.
            with plain(storage).engine.maintenance(HERE.user), refused(LockTimeout, "a write meanwhile"):
                storage.upsert_fact(HERE, make_draft("y"))
            found = contents(storage.snapshot(HERE))
        require(found == ["text of x"], f"there is {found}")

    def test_files_of_the_host_are_left_alone(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            theirs = (bucket_of(storage) / "threads" / "t1.json", bucket_of(storage) / "notes.txt")
            for path in theirs:
                write_file(path, "theirs")
            storage.clear_all(HERE.user.raw)
            kept = [path.name for path in theirs if path.is_file() and path.read_text("utf-8") == "theirs"]
        require(kept == ["t1.json", "notes.txt"], f"of the host's two files there are {kept}")


class SettingRules(StorageRules):
    """Says how a storage is named, built, used by a manager and closed."""

    def test_the_settings_can_name_it(self) -> None:
        with self._root() as opened:
            kind = type(opened())
            name = f"{kind.__module__}:{kind.__qualname__}"
            with allowed(f"storage_class = {name!r}"):
                config = DeerMemConfig(storage_path=opened().storage_root, storage_class=name)
                with open_repository(config) as built:
                    require(type(built) is kind, f"{name} names {type(built)}")

    def test_the_root_is_the_one_that_it_was_given(self) -> None:
        with temporary_root() as root:
            with self.make_storage(root) as storage:
                storage.upsert_fact(HERE, make_draft("x"))
                told = storage.storage_root
            found = MemoryRepository(root).list_users()
            require(Path(told).samefile(root), f"it says that its root is {told}, not {root}")
        require(found == ("alice",), f"at its root there are the users {found}")

    def test_a_user_is_required_where_the_settings_say_so(self) -> None:
        with self._root() as opened:
            strict = opened(strict_user_scope=True)
            with refused(InvalidInputError, "no user, with strict_user_scope"):
                strict.snapshot(Scope.of(None))
            opened().upsert_fact(Scope.of(None), make_draft("x"))
            found = contents(opened().snapshot(Scope.of(None)))
        require(found == ["text of x"], f"without a user there is {found}")

    def test_the_summary_file_has_the_name_that_the_settings_say(self) -> None:
        with self._root() as opened:
            storage = opened(manifest_filename="summary.json")
            storage.upsert_fact(HERE, make_draft("x"))
            names = sorted(path.name for path in bucket_of(storage).glob("*.json") if path.name[0] != ".")
        require(names == ["summary.json"], f"the user's JSON files are {names}")

    def test_a_manager_works_on_it(self) -> None:
        with self._root() as opened, DeerMem({"max_facts": 10}, repository=opened()) as manager:
            _, fact_id = manager.create_fact("Drinks tea.", "preference", 0.9, user_id="alice")
            require(fact_id is not None, "the fact was not created")
            manager.update_fact(str(fact_id), confidence=1.0, user_id="alice")
            context = manager.get_context("alice")
            require("- [preference | 1.00] Drinks tea." in context, f"the context is {context!r}")
            found = [fact["id"] for fact in manager.search("TEA", user_id="alice")]
            require(found == [fact_id], f"a search finds {found}")
            document = manager.delete_fact(str(fact_id), user_id="alice")
            require((document["facts"], document["revision"]) == ([], 3), f"the document is {document}")

    def test_a_manager_tells_what_goes_wrong_in_its_own_words(self) -> None:
        with self._root() as opened, DeerMem({}, repository=opened()) as manager:
            manager.run_on_store(lambda storage: storage.upsert_fact(HERE, make_draft("x")))
            with refused(MemoryConflictError, "a stale write through a manager"):
                manager.run_on_store(lambda storage: storage.upsert_fact(HERE, make_draft("x"), expected=7))
            write_file(fact_file(manager.repository, "x"), b"no fact at all")
            with refused(MemoryCorruptionError, "a damaged file, read through a manager"):
                manager.reload_memory(user_id="alice")

    def test_closing_closes_the_adapter(self) -> None:
        index = RememberingIndex()
        with self._root() as opened:
            opened(retrieval_adapter=index).close()
            require(index.closed > 0, "the adapter is still open")

    def test_closing_twice_is_no_error(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, FactDraft("tea"))
            for time in ("first", "second"):
                with allowed(f"the {time} close"):
                    storage.close()

    def test_it_closes_itself_at_the_end_of_a_with_block(self) -> None:
        index = RememberingIndex()
        with self._root() as opened:
            with opened(retrieval_adapter=index) as storage:
                require(isinstance(storage, MemoryRepository), f"the block is given {type(storage)}")
            require(index.closed > 0, "it is still open")


def _together(work: Callable[[int], bool | None], workers: int) -> list[bool | None]:
    """Runs a work in several threads that begin at once; returns what each returned."""
    start = threading.Barrier(workers)

    def begin(worker: int) -> bool | None:
        start.wait(timeout=SECONDS)
        return work(worker)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(begin, range(workers), timeout=SECONDS))
