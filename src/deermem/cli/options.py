"""The options that commands share, and what they come to."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, TypeVar, get_type_hints

import typer

from deermem.cli.exits import UsageError, report_of
from deermem.cli.output import Output
from deermem.cli.variables import unknown_here

if TYPE_CHECKING:
    from deermem.config import EdgeSettings
    from deermem.model.identity import Scope
    from deermem.repository import MemoryRepository

STORAGE_CLASS: Final = "DEERMEM_STORAGE_CLASS"

_PANEL: Final = "Where and how"

StoragePath = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="The storage root [DEERMEM_DATA_DIR, else ~/.deermem].",
        rich_help_panel=_PANEL,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, also of an error.", rich_help_panel=_PANEL)
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print only what a script reads.", rich_help_panel=_PANEL),
]
UserIdOption = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The user [DEERMEM_USER_ID, else `default`].", rich_help_panel=_PANEL),
]
NamedUserIdOption = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The user; DEERMEM_USER_ID does not count.", rich_help_panel=_PANEL),
]
NoUser = Annotated[
    bool, typer.Option("--no-user", help="The memory without a user, in the root.", rich_help_panel=_PANEL)
]
AgentOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The agent; without it the default one.", rich_help_panel=_PANEL),
]

FactIdArgument = Annotated[str, typer.Argument(metavar="FACT_ID", show_default=False)]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Says which store a command works on, and how it answers."""

    storage_path: StoragePath = None
    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def out(self) -> Output:
        """Where the command writes."""
        return Output(self.as_json, self.quiet)

    @property
    def settings(self) -> EdgeSettings:
        """The settings of the environment."""
        from deermem.config import read_environment

        return read_environment()

    @property
    def storage_root(self) -> str:
        """The storage root as an absolute path without links."""
        return os.path.realpath(self.settings.storage_path(self.storage_path))

    @property
    def storage_class(self) -> str:
        """The class that the environment names for the store; empty means `MemoryRepository` itself."""
        return os.environ.get(STORAGE_CLASS, "")

    def repository(self, *, writes: bool = False, tells: bool = True) -> MemoryRepository:
        """Opens the store with the class that the environment names, so that a command passes its seams.

        Nothing is written.

        Args:
            writes: Whether the command changes memory, so that a person is warned in a store of another uid.
            tells: Whether a person is told of memory of version 1 that a read or a write migrates.

        Raises:
            InvalidInputError: The class cannot be used.
        """
        from deermem.cli.version_one import tell_of_migrations

        repository = self._repository()
        if tells:
            tell_of_migrations(repository, self.out, self.warn_of_owner)
        if writes:
            self.warn_of_owner()
        return repository

    def _repository(self) -> MemoryRepository:
        if not self.storage_class:
            return self.plain_repository()
        from deermem.asgi.naming import told_by_variable
        from deermem.config import DeerMemConfig
        from deermem.manager.opening import open_repository

        settings = self.settings
        config = DeerMemConfig(
            storage_path=self.storage_root,
            storage_class=self.storage_class,
            file_lock_timeout_seconds=settings.lock_timeout,
            undo_days=settings.undo_days,
            manifest_filename=settings.manifest_filename,
        )
        with told_by_variable("", {"storage_class": STORAGE_CLASS}):
            return open_repository(config)

    @property
    def bucket(self) -> str:
        """The directory of the user, where the command works on one."""
        return self.storage_root

    def warn_of_owner(self) -> None:
        """Tells a person whose store it is, if that is another uid than this process has."""
        from deermem.cli.denial import warn_before_writing

        warn_before_writing(self.out, self.storage_root, self.bucket)

    def plain_repository(
        self, retrieval_adapter: str | None = None, *, writes: bool = False
    ) -> MemoryRepository:
        """Opens the store past that class, for a command that works on files and not on facts.

        Args:
            retrieval_adapter: The search index.
            writes: Whether the command changes memory, so that a person is told what it passes by.
        """
        from deermem.repository import MemoryRepository

        if writes and self.storage_class:
            passed = f"{self.storage_class} ({STORAGE_CLASS})"
            self.out.note(f"This works on files: {passed} is neither asked nor told.")
        if writes:
            self.warn_of_owner()
        settings = self.settings
        return MemoryRepository(
            self.storage_root,
            lock_timeout=settings.lock_timeout,
            undo_days=settings.undo_days,
            manifest_filename=settings.manifest_filename,
            retrieval_adapter=retrieval_adapter,
        )


@dataclass(frozen=True, slots=True)
class UserOptions(StoreOptions):
    """Says which user a command works on, too."""

    user_id: UserIdOption = None
    no_user: NoUser = False

    @property
    def user(self) -> str | None:
        """The raw user id; `None` is the memory without a user."""
        if self.no_user and self.user_id is not None:
            raise UsageError("--no-user and --user-id exclude each other")
        if self.no_user:
            return None
        return self.settings.user_id if self.user_id is None else self.user_id

    @property
    def bucket(self) -> str:
        """The directory of the user."""
        from deermem.format.layout import bucket_parts
        from deermem.model.identity import UserId

        return os.path.join(self.storage_root, *bucket_parts(UserId.parse(self.user)))

    def scope_of(self, agent: str | None) -> Scope:
        """Returns the scope of one agent of the user."""
        from deermem.model.identity import DEFAULT_AGENT, Scope

        return Scope.of(self.user, None if agent == DEFAULT_AGENT else agent)


@dataclass(frozen=True, slots=True)
class NamedUserOptions(UserOptions):
    """Says which user a command works on, which has to be said on the command line."""

    user_id: NamedUserIdOption = None

    @property
    def is_named(self) -> bool:
        """Whether a user was named; the variable of the environment names nobody here."""
        return self.user_id is not None or self.no_user


@dataclass(frozen=True, slots=True)
class ScopeOptions(UserOptions):
    """Says which agent of a user a command works on, too."""

    agent: AgentOption = None

    @property
    def scope(self) -> Scope:
        """Where the facts live."""
        return self.scope_of(self.agent)


Options = TypeVar("Options", bound=StoreOptions)
Arguments = ParamSpec("Arguments")


def with_options(
    kind: type[Options],
) -> Callable[[Callable[Concatenate[Options, Arguments], None]], Callable[..., None]]:
    """Gives a command the options of a class, and turns what it raises into an exit code.

    Typer looks at a command's signature only, so the result has one with the command's own
    parameters, without the first, and the options.
    """

    def decorate(command: Callable[Concatenate[Options, Arguments], None]) -> Callable[..., None]:
        own, shared = _parameters(command)[1:], sorted(_parameters(kind), key=_generality(kind))

        def run(**values: Any) -> None:
            options = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            with reported(options):
                if unknown := unknown_here():
                    options.out.note(f"Warning: {unknown}")
                command(options, **values)  # type: ignore[call-arg]  # the signature below says what comes

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *shared)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _generality(kind: type) -> Callable[[inspect.Parameter], int]:
    """Returns a sort key that puts what is special to a command before what many have."""
    depth = {
        name: index for index, each in enumerate(kind.__mro__) for name in vars(each).get("__slots__", ())
    }
    return lambda parameter: depth[parameter.name]


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    return [
        each.replace(annotation=hints[each.name]) for each in inspect.signature(function).parameters.values()
    ]


@contextmanager
def reported(options: StoreOptions) -> Iterator[None]:
    """Reports what goes wrong inside, and exits with the error's code."""
    try:
        yield
    except typer.Exit:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nobody gets to see a stack trace
        from deermem.cli.hints import improved

        root = _known_root(options)
        report = report_of(error, root)
        if root is not None:
            report = improved(report, error, options, root)
        options.out.report(report)
        raise typer.Exit(report.code) from None


def _known_root(options: StoreOptions) -> str | None:
    try:
        return options.storage_root
    except (ValueError, OSError):
        return None
