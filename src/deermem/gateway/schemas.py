"""The shapes of requests and answers, as `/openapi.json` tells them.

Requests are checked against these models. Answers are written from what the store returns, so the models of
answers only describe them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from deermem.compat import DOCUMENT_PARTS
from deermem.gateway.import_schema import CONTENT, FACTS, NOT_BLANK, sections
from deermem.model.manifest import MANIFEST_VERSION
from deermem.model.rules import MAX_CONTENT_BYTES, MAX_TEXT
from deermem.model.summaries import HISTORY_SECTIONS, USER_SECTIONS

# What is blank passes the model: the store refuses it in words of its own.
_NOT_BLANK: Final[dict[str, Any]] = {"pattern": NOT_BLANK}
_TIME: Final[dict[str, Any]] = {"anyOf": [{"format": "date-time"}, {"const": ""}]}


def _describe_content(schema: dict[str, Any]) -> None:
    del schema["maxLength"]
    schema.update(CONTENT)


Text = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_BYTES, json_schema_extra=_describe_content)]
Category = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, json_schema_extra=_NOT_BLANK)]
Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


# A list is given up at the first item that is wrong: to describe millions of them would take a minute, in
# which nobody is answered.
_GIVE_UP: Final = True
_MAX_KEYS: Final = 100


class _Request(BaseModel):
    model_config = ConfigDict(strict=True)


class _Closed(_Request):
    """Has no other keys than those that are named."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _bound(cls, given: Any) -> Any:
        """Refuses at once what would be refused key by key."""
        if isinstance(given, dict) and len(given) > _MAX_KEYS:
            raise PydanticCustomError("too_many_keys", "Object has too many keys")
        return given


class NewFact(_Closed):
    """A fact to store; without a category it is `context`, without a confidence 0.5."""

    content: Text
    category: Category | None = None
    confidence: Confidence | None = None


class FactChange(_Closed):
    """What to change of a fact; what is left out or null stays."""

    content: Text | None = None
    category: Category | None = None
    confidence: Confidence | None = None


class NewFacts(_Closed):
    """Facts to store together: all of them or none."""

    facts: Annotated[list[NewFact], Field(min_length=1, fail_fast=_GIVE_UP)]


class FactIds(_Closed):
    """Facts to delete together: all of them or none."""

    ids: Annotated[list[Annotated[str, Field(max_length=1_000)]], Field(min_length=1, fail_fast=_GIVE_UP)]


class NewSection(_Closed):
    """A summary; without `updatedAt` it gets the time of the change."""

    model_config = ConfigDict(alias_generator=to_camel)

    summary: Annotated[str, Field(max_length=100_000)]
    updated_at: Annotated[str, Field(json_schema_extra=_TIME)] | None = None


class UserSections(_Closed):
    """Summaries about the user."""

    model_config = ConfigDict(alias_generator=to_camel)

    work_context: NewSection | None = None
    personal_context: NewSection | None = None
    top_of_mind: NewSection | None = None


class HistorySections(_Closed):
    """Summaries about the past."""

    model_config = ConfigDict(alias_generator=to_camel)

    recent_months: NewSection | None = None
    earlier_context: NewSection | None = None
    long_term_background: NewSection | None = None


class SummaryChange(_Closed):
    """Summaries to replace; those left out stay."""

    user: UserSections | None = None
    history: HistorySections | None = None


class ImportedDocument(_Request):
    """A document as `GET /api/memory/export` returns it; of what it does not name nothing is left."""

    model_config = ConfigDict(
        json_schema_extra={
            "additionalProperties": True,
            "anyOf": [{"required": [part]} for part in DOCUMENT_PARTS],
        }
    )

    version: Annotated[str, Field(json_schema_extra={"enum": ["1.0", MANIFEST_VERSION]})] | None = None
    user: Annotated[dict[str, Any], Field(json_schema_extra=sections(*USER_SECTIONS))] | None = None
    history: Annotated[dict[str, Any], Field(json_schema_extra=sections(*HISTORY_SECTIONS))] | None = None
    facts: Annotated[list[dict[str, Any]], Field(json_schema_extra=FACTS, fail_fast=_GIVE_UP)] | None = None

    @model_validator(mode="after")
    def _is_document(self) -> Self:
        """Refuses what is something else, which would delete the memory."""
        if all(getattr(self, part) is None for part in DOCUMENT_PARTS):
            parts = ", ".join(DOCUMENT_PARTS)
            raise PydanticCustomError(
                "no_document", "Object must have at least one of {parts}", {"parts": parts}
            )
        return self


class _Answer(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class FactScope(_Answer):
    """Whose fact it is."""

    user_id: str | None = None
    agent_name: str


class Fact(_Answer):
    """A stored fact."""

    id: str
    content: str
    category: str
    category_extension: str | None = None
    topics: list[str]
    confidence: Annotated[float, Field(ge=0, le=1)]
    created_at: str
    source: str
    source_error: str | None = None
    schema_version: int
    status: str
    scope: FactScope
    revision: Annotated[int, Field(ge=1)]
    updated_at: str
    consolidated_at: str | None = None
    consolidated_from: list[str]


class Section(_Answer):
    """A summary."""

    summary: str
    updated_at: str


class UserSummaries(_Answer):
    """Summaries about the user."""

    work_context: Section
    personal_context: Section
    top_of_mind: Section


class HistorySummaries(_Answer):
    """Summaries about the past."""

    recent_months: Section
    earlier_context: Section
    long_term_background: Section


class MemoryDocument(_Answer):
    """The memory of a user, with the facts of one agent."""

    version: str
    revision: Annotated[int, Field(ge=0)]
    last_updated: str
    user: UserSummaries
    history: HistorySummaries
    facts: list[Fact]


class FactPage(_Answer):
    """A part of an agent's facts, sorted by id; `nextCursor` asks for the following part."""

    facts: list[Fact]
    next_cursor: str | None = None
    revision: Annotated[int, Field(ge=0)]


class Settings(BaseModel):
    """Settings of the memory that a client may need to know, by their names in the configuration."""

    model_config = ConfigDict(extra="allow")

    backend: str
    read_only: bool


class Status(_Answer):
    """The settings and the document."""

    config: Settings
    data: MemoryDocument


class Agent(_Answer):
    """An agent: `custom` tells whether it has a `config.yaml`, `facts` how many facts of its own it has."""

    name: str
    custom: bool
    facts: Annotated[int, Field(ge=0)]


class Agents(_Answer):
    """The agents of a user beside the default one, sorted by name."""

    agents: list[Agent]


class Health(_Answer):
    """Whether the gateway lives, or can serve."""

    status: str


class FieldProblem(BaseModel):
    """What is wrong with one value of a request."""

    loc: list[str | int]
    msg: str
    type: str


class Problem(BaseModel):
    """Why a request was not answered; `revision` tells the current one after a conflict."""

    detail: str
    revision: int | None = None
    factId: str | None = None  # noqa: N815 - the name in the answer


class Invalid(BaseModel):
    """What is wrong with the values of a request."""

    detail: list[FieldProblem]
