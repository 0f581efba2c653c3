"""What a run found out, and the JSON in which it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from benchmarks.measuring import Rounds, Spread, ratios

FORMAT: Final = 1
OK: Final = "ok"
MISSED: Final = "missed"
NO_BAR: Final = ""


@dataclass(frozen=True, slots=True)
class Result:
    """Compares the product with a floor.

    `bar` is the largest ratio that the row allows, or the smallest where `at_least` is set; `None`
    for a figure that only explains others. `unit` is `s`, `bytes`, `1/s` or empty for bare numbers.
    """

    row: str
    work: str
    floor_work: str
    product: float
    floor: float
    ratio: Spread
    bar: float | None
    at_least: bool = False
    unit: str = "s"
    note: str = ""

    @classmethod
    def timed(cls, row: str, work: str, floor_work: str, product: Rounds, floor: Rounds, **more: Any) -> Self:
        """Makes a result of the figures of each round."""
        return cls(
            row,
            work,
            floor_work,
            median(product),
            median(floor),
            ratios(product, floor),
            **{"bar": None, **more},
        )

    @property
    def verdict(self) -> str:
        """Whether the bar was met."""
        if self.bar is None:
            return NO_BAR
        met = self.ratio.middle >= self.bar if self.at_least else self.ratio.middle <= self.bar
        return OK if met else MISSED

    @property
    def key(self) -> tuple[str, str]:
        """What makes two results of different runs comparable."""
        return self.row, self.work

    def document(self) -> dict[str, Any]:
        """Returns the result as a JSON object."""
        return {**asdict(self), "verdict": self.verdict}


def save(path: Path, machine: dict[str, Any], results: Iterable[Result], failures: dict[str, str]) -> None:
    """Writes a run as JSON."""
    document = {
        "format": FORMAT,
        "machine": machine,
        "results": [result.document() for result in results],
        "failures": failures,
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def load_ratios(path: Path) -> dict[tuple[str, str], float]:
    """Reads the ratios of an earlier run by row and work.

    Raises:
        ValueError: The file is not such a run.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is not the JSON of a run of these benchmarks")
    return {(old["row"], old["work"]): float(old["ratio"]["middle"]) for old in document["results"]}
