"""Proves that a history is strictly serializable, from the order of the manifest revisions (G2, G7).

Every commit has a revision of its own, so the order is known but for the calls whose fate is not: those
of processes that died, or that were told that their commit is in doubt. Where a revision is missing one
of these must have made it; the checker tries which, and gives up only when none fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deermem.testing.simulation.history import UNCERTAIN, Call, History, Outcome
from deermem.testing.simulation.state import (
    FactState,
    Key,
    Operation,
    Refused,
    State,
    after,
    as_text,
    is_read,
)


def problems_of(history: History) -> list[str]:
    """Returns what is wrong with a history; nothing if it is strictly serializable."""
    early = [f"must not happen: {call}" for call in history.calls if call.outcome is Outcome.FELL_OVER]
    early += [*_twice(history), *_out_of_time(history)]
    if early:
        return early
    commits = {call.revision: call for call in history.calls if call.outcome is Outcome.COMMITTED}
    last = max((call.revision for call in history.calls if call.is_certain), default=0)
    lost = [call for call in history.calls if call.is_certain and call.revision > _final(history)]
    if lost:
        return [f"an acknowledged change or a state that was seen is lost at the end: {lost[0]}"]
    uncertain = [call for call in history.calls if call.outcome in UNCERTAIN and not is_read(call.operation)]
    search = _Search(history, commits, last)
    search.extend([State()], uncertain)
    return search.best if search.found is None else []


def _final(history: History) -> int:
    """Returns the revision that the last read of all showed."""
    reads = [call for call in history.calls if call.outcome is Outcome.READ]
    return reads[-1].revision if reads else 0


def _twice(history: History) -> Iterator[str]:
    made: dict[int, Call] = {}
    for call in history.calls:
        if call.outcome is Outcome.COMMITTED and made.setdefault(call.revision, call) is not call:
            yield f"two commits have revision {call.revision}: {made[call.revision]} / {call}"


def _out_of_time(history: History) -> Iterator[str]:
    """Finds calls that saw less than what had been seen or made before they began."""
    ended = sorted(
        (call for call in history.calls if call.is_certain and call.ended is not None),
        key=lambda call: call.ended or 0,
    )
    for call in history.calls:
        if not call.is_certain:
            continue
        before = [other for other in ended if (other.ended or 0) < call.began]
        floor = max((other.revision for other in before), default=0)
        if call.revision < floor or (call.outcome is Outcome.COMMITTED and call.revision == floor > 0):
            yield f"went back behind revision {floor}: {call}"


class _Search:
    """Finds for each revision the call that made it, so that all that was seen is explained."""

    def __init__(self, history: History, commits: dict[int, Call], last: int) -> None:
        self.found: list[State] | None = None
        self.best: list[str] = ["no order of the commits explains the history"]
        self._history = history
        self._commits = commits
        self._last = last
        self._reached = -1
        self._at: dict[int, list[Call]] = {}
        for call in history.calls:
            if call.outcome in (Outcome.READ, Outcome.NOTHING_TO_DO):
                self._at.setdefault(call.revision, []).append(call)

    def extend(self, states: list[State], uncertain: Sequence[Call]) -> None:
        """Explains the next revision in every way there is, until all are explained."""
        wrong = self._wrong_at(states)
        if wrong:
            self._note(states, wrong)
            return
        if len(states) > self._last:
            wrong = list(self._wrongly_refused(states))
            if wrong:
                self._note(states, wrong)
            else:
                self.found = states
            return
        known = self._commits.get(len(states))
        reasons: list[str] = []
        for call in [known] if known is not None else list(uncertain):
            state = self._made(states[-1], call, reasons)
            if state is not None:
                left = [other for other in uncertain if other is not call]
                self.extend([*states, state], left)
                if self.found is not None:
                    return
        if reasons or known is None:
            self._note(states, reasons or [f"nobody can have made revision {len(states)}"])

    def _made(self, before: State, call: Call, reasons: list[str]) -> State | None:
        try:
            state = after(before, call.operation)
        except Refused as refusal:
            reasons.append(f"was committed although its {refusal} precondition did not hold: {call}")
            return None
        if state.revision != before.revision + 1:
            reasons.append(f"was committed although it changed nothing: {call}")
            return None
        return state

    def _note(self, states: list[State], wrong: list[str]) -> None:
        if len(states) > self._reached:
            self._reached, self.best = len(states), wrong

    def _wrong_at(self, states: list[State]) -> list[str]:
        state = states[-1]
        return [wrong for call in self._at.get(state.revision, ()) for wrong in _wrong_in(state, call)]

    def _wrongly_refused(self, states: list[State]) -> Iterator[str]:
        """Finds calls that were refused though their preconditions held all the time."""
        made = {state.revision: None for state in states}
        for call in self._history.calls:
            if call.outcome is not Outcome.REFUSED or call.ended is None:
                continue
            first = max((other.revision for other in self._before(call.began)), default=0)
            if not any(_refuses(state, call.operation) for state in states[first:]) and made:
                yield f"was refused although its precondition held: {call}"

    def _before(self, moment: int) -> Iterator[Call]:
        for call in self._history.calls:
            if call.is_certain and call.ended is not None and call.ended < moment:
                yield call


def _refuses(state: State, operation: Operation) -> bool:
    try:
        after(state, operation)
    except Refused:
        return True
    return False


def _wrong_in(state: State, call: Call) -> Iterator[str]:
    if call.outcome is Outcome.NOTHING_TO_DO:
        try:
            changed = after(state, call.operation) is not state
        except Refused:
            changed = True
        if changed:
            yield f"did nothing although there was something to do: {call}"
        return
    expected = _visible(state, call)
    if dict(call.seen) != expected:
        yield f"saw {as_text(call.seen)} and not {as_text(expected)}: {call}"
    if call.summary is not None and call.summary != state.summary:
        yield f"saw the summary {call.summary!r} and not {state.summary!r}: {call}"


def _visible(state: State, call: Call) -> dict[Key, FactState]:
    if call.only is not None:
        return {key: fact for key, fact in state.facts.items() if key == call.only}
    return {key: fact for key, fact in state.facts.items() if key[0] in call.agents}
