"""What a row is given: a place on a real disk and the scale of the run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.scale import Scale


@dataclass(frozen=True, slots=True)
class Bench:
    """Gives a row folders to work in; `place` is on the disk that is measured, `charts` is where to draw."""

    place: Path
    scale: Scale
    charts: Path | None = None

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Makes an empty folder and removes it with all that was put into it."""
        path = Path(mkdtemp(dir=self.place))
        try:
            yield path
        finally:
            shutil.rmtree(path)

    def settle(self) -> None:
        """Lets the disk finish what was written without a sync, so that it disturbs no sample."""
        if self.scale.settles and hasattr(os, "sync"):
            os.sync()
