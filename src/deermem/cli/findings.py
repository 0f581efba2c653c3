"""How the findings of a check are told."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deermem.cli.output import number_of, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from deermem.maintenance.findings import CheckReport, Finding

PERMISSIONS: Final = "permissions"
# Of one kind in one directory a person needs to see some; with --json or in a pipe there are all.
_SHOWN_OF_A_KIND = 10
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def finding_document(finding: Finding) -> dict[str, Any]:
    """Returns a finding as JSON."""
    return {
        "kind": finding.kind,
        "severity": finding.severity.name.lower(),
        "path": finding.path,
        "message": finding.message,
        **({"repair": finding.repair} if finding.repair else {}),
    }


def finding_cells(finding: Finding) -> list[str]:
    """Returns a finding as cells of a list: severity, kind, path, sentence, repair."""
    cells = (finding.severity.name.lower(), finding.kind, finding.path, finding.message, finding.repair)
    return [one_line(cell) for cell in cells]


def told_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Returns findings as lines tell them: those of permissions are one, with their number.

    Another program may have made the store, and then there is one for each file of it.
    """
    loose = [each for each in findings if each.kind == PERMISSIONS]
    if len(loose) < 2:
        return list(findings)
    message = (
        f"{len(loose):,} files and directories here are open to others than their owner; fine if that is "
        "on purpose; --quiet names each"
    )
    place = posixpath.commonpath([each.path for each in loose]) or "."
    whole = replace(loose[0], path=place, message=message)
    others = [each for each in findings if each.kind != PERMISSIONS]
    first = findings.index(loose[0])
    return [*others[:first], whole, *others[first:]]


def drawn_findings(findings: Sequence[Finding]) -> RenderableType:
    """Draws findings, of each kind the first ones."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Text] = []
    shown: Counter[str] = Counter()
    for finding in findings:
        severity, kind, path, message, repair = finding_cells(finding)
        shown[kind] += 1
        if shown[kind] > _SHOWN_OF_A_KIND:
            continue
        parts.append(Text.assemble((f"{severity} {kind}", _STYLES[severity]), "  ", (path, "cyan")))
        parts.append(Text(f"    {message}"))
        if repair:
            parts.append(Text(f"    --repair: {repair}", style="dim"))
    for kind, count in shown.items():
        if count > _SHOWN_OF_A_KIND:
            parts.append(Text(f"... and {count - _SHOWN_OF_A_KIND:,} more of {kind}; --json has all", "dim"))
    return Group(*parts)


def summary_of(report: CheckReport) -> str:
    """Says in a line what was looked at and how much was found."""
    facts = sum(each.facts for each in report.users)
    counted = Counter(each.severity for each in report.findings)
    counts = ", ".join(number_of(counted[each], each.name.lower()) for each in sorted(counted, reverse=True))
    looked = f"{number_of(len(report.users), 'user')}, {number_of(facts, 'fact')}"
    return f"Checked {looked}: {counts or 'nothing is wrong'}"
