"""The operations whose crashes are explored (guarantee G1), each with a model of what it should do."""

from __future__ import annotations

from typing import Final

from deermem import ANYTHING, ChangeSet, Delete, FactDraft, Scope, Section, Summaries, SummaryPatch, Upsert
from deermem.format.layout import JOURNAL, shard_of
from deermem.model.identity import DEFAULT_AGENT, AgentName, FactId
from deermem.repository import MemoryRepository
from deermem.testing.crash_scenario import Scenario
from deermem.testing.disk_steps import Step, StepKind
from deermem.testing.memory_model import Action, MemoryModel

USER: Final = "alice"
HERE: Final = Scope.of(USER)
RESEARCH: Final = "research"
THERE: Final = Scope.of(USER, RESEARCH)
BUCKET: Final = f"users/{USER}"


def same_shard(fact_id: str) -> str:
    """Returns another id whose fact lies in the same shard."""
    shard = shard_of(FactId(fact_id))
    return next(other for n in range(10_000) if shard_of(FactId(other := f"{fact_id}_{n}")) == shard)


def create(fact_id: str, text: str = "First text.", scope: Scope = HERE) -> Action:
    return Action(
        f"create {fact_id}",
        lambda repository: repository.upsert_fact(scope, FactDraft(text, id=FactId(fact_id))),
        lambda memory: memory.put(scope.agent, fact_id, text).committed(),
    )


def update(fact_id: str, text: str, expected: int) -> Action:
    draft = FactDraft(text, id=FactId(fact_id))
    return Action(
        f"update {fact_id}",
        lambda repository: repository.upsert_fact(HERE, draft, expected=expected),
        lambda memory: memory.put(HERE.agent, fact_id, text).committed(),
    )


def delete(fact_id: str) -> Action:
    return Action(
        f"delete {fact_id}",
        lambda repository: repository.delete_fact(HERE, fact_id),
        lambda memory: memory.drop(HERE.agent, fact_id).committed(),
    )


def summarise(text: str) -> Action:
    return Action(
        "update summaries",
        lambda repository: repository.update_summaries(USER, {"user": {"topOfMind": {"summary": text}}}),
        lambda memory: memory.summarise("user", "topOfMind", text).committed(),
    )


def clear(scope: Scope) -> Action:
    return Action(
        f"clear {scope.agent}",
        lambda repository: repository.clear(scope),
        lambda memory: memory.drop(scope.agent).committed(),
    )


CLEAR_ALL: Final = Action(
    "clear all",
    lambda repository: repository.clear_all(USER),
    lambda memory: MemoryModel(memory.revision).committed(),
)

TRIM: Final = Action(
    "trim to 1",
    lambda repository: repository.trim(HERE, 1),
    lambda memory: memory.drop(DEFAULT_AGENT, "b", "c").committed(),
)

CREATE_AT_THE_CAP: Final = Action(
    "create at the cap of 2",
    lambda repository: repository.create_fact(
        HERE, FactDraft("Sure.", id=FactId("sure"), confidence=0.9), max_facts=2
    ),
    lambda memory: memory.drop(DEFAULT_AGENT, "b").put(DEFAULT_AGENT, "sure", "Sure.").committed(),
)


CREATE_ABOVE_THE_CAP: Final = Action(
    "create above the cap of 2",
    CREATE_AT_THE_CAP.run,
    lambda memory: memory.drop(DEFAULT_AGENT, "b", "c").put(DEFAULT_AGENT, "sure", "Sure.").committed(),
)


def change_several(repository: MemoryRepository) -> object:
    agent = AgentName(RESEARCH)
    return repository.apply_changes(
        USER,
        ChangeSet(
            upserts=(
                Upsert(DEFAULT_AGENT, FactDraft("Second text.", id=FactId("a")), ANYTHING),
                Upsert(DEFAULT_AGENT, FactDraft("New.", id=FactId("n"))),
                Upsert(agent, FactDraft("New there.", id=FactId("m"))),
            ),
            deletes=(Delete(DEFAULT_AGENT, FactId("b")), Delete(agent, FactId("r"))),
            summaries=SummaryPatch.parse({"user": {"workContext": {"summary": "Works."}}}),
        ),
    )


SEVERAL: Final = Action(
    "change several facts of two agents and a summary",
    change_several,
    lambda memory: (
        memory.put(DEFAULT_AGENT, "a", "Second text.")
        .put(DEFAULT_AGENT, "n", "New.")
        .put(RESEARCH, "m", "New there.")
        .drop(DEFAULT_AGENT, "b")
        .drop(RESEARCH, "r")
        .summarise("user", "workContext", "Works.")
        .committed()
    ),
)

READ: Final = Action("read", lambda repository: repository.snapshot(HERE), lambda memory: memory)

BOTH: Final = (DEFAULT_AGENT, RESEARCH)
THREE: Final = (create("a"), create("b", "Other text."), create("c", "Third text."))
TWO_AGENTS: Final = (*THREE[:2], create("r", "Found.", THERE), summarise("Something."))


def at_the_commit_point(step: Step) -> bool:
    """Selects the rename that publishes a journal."""
    return step.kind is StepKind.RENAME and step.target.endswith(JOURNAL)


CONSOLIDATE: Final = Action(
    "consolidate",
    lambda repository: repository.consolidate(HERE, ["a", "c"], FactDraft("Both.", id=FactId("ac"))),
    lambda memory: memory.drop(DEFAULT_AGENT, "a", "c").put(DEFAULT_AGENT, "ac", "Both.").committed(),
)

IMPORT: Final = Action(
    "import",
    lambda repository: repository.replace_all(
        HERE,
        [FactDraft("Second text.", id=FactId("a")), FactDraft("Imported.", id=FactId("i"))],
        Summaries.of({("history", "recentMonths"): Section("Imported, too.", "2026-01-01T00:00:00Z")}),
    ),
    lambda memory: (
        memory.drop(DEFAULT_AGENT, "b", "c")
        .put(DEFAULT_AGENT, "a", "Second text.")
        .put(DEFAULT_AGENT, "i", "Imported.")
        .without_summaries()
        .summarise("history", "recentMonths", "Imported, too.")
        .committed()
    ),
)

DELETE_AGENT: Final = Action(
    "delete an agent",
    lambda repository: repository.delete_agent(THERE),
    lambda memory: memory.drop(RESEARCH).committed(),
)

BASIC: Final = (
    Scenario("create for a new user", create("a")),
    Scenario("create in a new shard", create("b"), THREE[:1]),
    Scenario("create in a shard that is there", create(same_shard("a")), THREE[:1]),
    Scenario("update", update("a", "Second text.", 1), THREE[:1]),
    Scenario("delete", delete("a"), THREE[:2]),
)

UNSETTLED: Final = (
    Scenario("create right after a create", create(same_shard("a")), THREE[:1], settled=False),
    Scenario(
        "update right after an update", update("a", "3", 2), (*THREE[:1], update("a", "2", 1)), settled=False
    ),
    Scenario("create right after a delete", create("a"), (*THREE[:2], delete("a")), settled=False),
    Scenario("delete right after a create", delete("b"), THREE[:2], settled=False),
)

OTHERS: Final = (
    Scenario("create for no user", create("a", scope=Scope.of(None)), user_id=None),
    Scenario("update summaries", summarise("Something."), THREE[:1]),
    Scenario("update summaries of a new user", summarise("Something.")),
    Scenario(
        "clear a scope",
        clear(HERE),
        TWO_AGENTS,
        agents=BOTH,
        cleared=(DEFAULT_AGENT,),
        safety_copy="5-clear.json",
    ),
    Scenario("clear all", CLEAR_ALL, TWO_AGENTS, agents=BOTH, cleared=BOTH, safety_copy="5-clear.json"),
    Scenario(
        "delete an agent",
        DELETE_AGENT,
        TWO_AGENTS,
        agents=BOTH,
        cleared=(RESEARCH,),
        removed_files={f"{BUCKET}/agents/{RESEARCH}/config.yaml": b"name: research"},
    ),
    Scenario("trim", TRIM, THREE),
    Scenario("consolidate", CONSOLIDATE, THREE),
    Scenario("create at the cap", CREATE_AT_THE_CAP, THREE[:2]),
    Scenario("create above the cap", CREATE_ABOVE_THE_CAP, THREE, safety_copy="4-trim.json"),
    Scenario(
        "recover a hot journal",
        READ,
        THREE[:1],
        interrupted=update("a", "Second text.", 1),
        interrupted_at=at_the_commit_point,
    ),
    Scenario(
        "recover a hot journal that is not durable",
        READ,
        THREE[:2],
        settled=False,
        interrupted=delete("b"),
        interrupted_at=at_the_commit_point,
    ),
)

SHARED: Final = (
    Scenario(
        "update what a snapshot shares",
        update("a", "Second text.", 1),
        THREE[:1],
        snapshot="snapshots/first",
    ),
    Scenario(
        "recover what a snapshot shares",
        READ,
        THREE[:1],
        interrupted=update("a", "Second text.", 1),
        interrupted_at=at_the_commit_point,
        snapshot="snapshots/first",
    ),
)

LARGE: Final = (
    Scenario("change several facts", SEVERAL, TWO_AGENTS, agents=BOTH),
    Scenario("import", IMPORT, (*THREE, summarise("Something.")), safety_copy="5-import.json"),
)

SCENARIOS: Final = (*BASIC, *UNSETTLED, *OTHERS, *SHARED, *LARGE)
