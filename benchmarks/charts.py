"""Draws the curves as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import curves
from benchmarks.bench import Bench
from benchmarks.curves import FLOOR, ONE_USER, OPERATIONS, OWN, SQLITE, USER_EACH, WRITERS, Throughput
from benchmarks.peers import table as peer_table
from benchmarks.peers.costs import Cost
from benchmarks.results import Result

ROW: Final = "CHART"
COSTS: Final = "cost-by-facts.png"
THROUGHPUT: Final = "throughput-by-writers.png"
_DOTS_PER_INCH: Final = 150
# Okabe and Ito's colours, which all kinds of sight tell apart; each line has a mark of its own, too.
_STYLES: Final[Mapping[str, Mapping[str, Any]]] = {
    OWN: {"color": "#0072B2", "marker": "o", "linewidth": 2.4, "zorder": 5},
    SQLITE: {"color": "#D55E00", "marker": "s"},
    "SqliteStore": {"color": "#009E73", "marker": "^"},
    "diskcache": {"color": "#CC79A7", "marker": "D"},
    "diskcache as it comes": {"color": "#CC79A7", "marker": "d", "linestyle": ":", "fillstyle": "none"},
    "one JSON file": {"color": "#E69F00", "marker": "v"},
    FLOOR: {"color": "#000000", "marker": "x", "linestyle": "--"},
}
_LABELS: Final = {
    "SqliteStore": "LangGraph SqliteStore",
    "diskcache": "diskcache, synchronous",
    "diskcache as it comes": "diskcache as it comes (may lose the last writes)",
    FLOOR: "floor: three durable replacements",
}
Points = Mapping[str, Sequence[tuple[int, float]]]


def measure(bench: Bench) -> Iterator[Result]:
    """Measures the curves and draws them into the folder of charts, if there is one."""
    costs = list(curves.by_facts(bench))
    throughputs = list(curves.by_writers(bench))
    if bench.charts is not None:
        draw_costs(costs, bench.charts / COSTS)
        draw_throughputs(throughputs, bench.charts / THROUGHPUT)
    yield from peer_table.compared(costs)
    yield from throughput_results(throughputs)


def throughput_results(found: Iterable[Throughput]) -> Iterator[Result]:
    """Compares the changes a second with those of SQLite and of the floor."""
    by_key = {(each.store, each.place, each.writers): each for each in found}
    for (store, place, writers), own in by_key.items():
        if store != OWN:
            continue
        for other in (SQLITE, FLOOR):
            work = f"changes a second, {writers} at work, {place}, against {other}"
            yield Result.timed(ROW, work, other, own.rates, by_key[other, place, writers].rates, unit="1/s")


def draw_costs(costs: Sequence[Cost], path: Path) -> None:
    """Draws time against the number of facts, one panel an operation; both axes are logarithmic."""
    figure = _figure(11.0, 8.6)
    panels = figure.subplots(2, 2, sharex=True).flatten()
    for panel, (operation, title) in zip(panels, OPERATIONS.items(), strict=True):
        points: dict[str, list[tuple[int, float]]] = {}
        for cost in costs:
            if cost.operation == operation:
                points.setdefault(cost.peer, []).append((cost.facts, median(cost.rounds)))
        _lines(panel, points)
        panel.set_title(title)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(import_module("matplotlib.ticker").EngFormatter("s"))
        panel.xaxis.set_major_formatter(_thousands())
    for panel in panels[2:]:
        panel.set_xlabel("facts in the store")
    for panel in panels[::2]:
        panel.set_ylabel("time of one call")
    _finish(figure, panels[0], path, "Cost of one call against the number of facts")


def draw_throughputs(found: Sequence[Throughput], path: Path) -> None:
    """Draws changes a second against the number of writers."""
    figure = _figure(11.0, 5.2)
    panels = figure.subplots(1, 2)
    for panel, place in zip(panels, (ONE_USER, USER_EACH), strict=True):
        points: dict[str, list[tuple[int, float]]] = {}
        for each in found:
            if each.place == place:
                points.setdefault(each.store, []).append((each.writers, median(each.rates)))
        _lines(panel, points)
        panel.set_title(place)
        panel.set_xscale("log", base=2)
        panel.set_xticks(WRITERS, [str(writers) for writers in WRITERS])
        panel.set_ylim(bottom=0)
        panel.yaxis.set_major_formatter(_thousands())
        panel.set_xlabel("writing processes")
        panel.set_ylabel("durable changes a second")
    _finish(figure, panels[0], path, "Throughput against the number of writers")


def _figure(width: float, height: float) -> Any:
    return import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def _thousands() -> Any:
    show: Callable[[float, object], str] = lambda value, _: f"{value:,.0f}"  # noqa: E731 - typed
    return import_module("matplotlib.ticker").FuncFormatter(show)


def _lines(panel: Any, points: Points) -> None:
    for store, line in points.items():
        across, up = zip(*sorted(line), strict=True)
        style = {"linewidth": 1.6, "markersize": 6.5, **_STYLES[store]}
        panel.plot(across, up, label=_LABELS.get(store, store), **style)
    panel.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.8)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _finish(figure: Any, panel: Any, path: Path, title: str) -> None:
    figure.suptitle(title, fontsize=14)
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH)
