"""What the gateway counts, in the text format of Prometheus."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.asgi.limits import TOO_SLOW
from deermem.gateway.errors import FAILED, Refusal

_log = logging.getLogger(__name__)

# Anything may stand in a request line; only what is known may become a label.
_METHODS: Final = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
_OTHER: Final = "other"
_HELP: Final[Mapping[str, str]] = {
    "commits": "Transactions of the store.",
    "conflicts": "Transactions that were refused because another writer came before.",
    "recoveries": "Transactions that an interrupted process had left, and this one completed.",
    "lock_waits": "Writes that waited noticeably for the lock of their user.",
    "lock_timeouts": "Writes that waited in vain for the lock of their user.",
    "cache_hits": "Reads of a scope that read none of its facts from the disk.",
    "cache_misses": "Reads of a scope that read its facts from the disk.",
}
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts requests, and reads the store's counters when it is asked.

    Args:
        counters: Returns the store's counters: their names, and their values since the start.
        present: Returns how many requests wait for the store or are at work in it.
    """

    def __init__(self, counters: Callable[[], Mapping[str, int]], present: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        # Methods, routes and statuses are few; to look their counters up takes longer than to count.
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.requests = Counter(
            "deermem_http_requests",
            "Answers by method, route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "deermem_http_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        waiting = Gauge(
            "deermem_store_calls", "Requests that wait for the store or work on it.", registry=self.registry
        )
        waiting.set_function(present)
        self.registry.register(_StoreCounters(counters))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts an answer."""
        known = method if method in _METHODS else _OTHER
        children = self._children.get((known, route, status))
        if children is None:
            children = self.requests.labels(known, route, str(status)), self.seconds.labels(route)
            self._children[known, route, status] = children
        children[0].inc()
        children[1].observe(seconds)

    def text(self) -> bytes:
        """Returns everything that was counted."""
        return generate_latest(_WithoutTimes(self.registry))


class _StoreCounters(Collector):
    def __init__(self, counters: Callable[[], Mapping[str, int]]) -> None:
        self._counters = counters

    def collect(self) -> Iterable[Metric]:
        """Yields the store's counters as they are now."""
        for name, value in self._counters().items():
            family = CounterMetricFamily(f"deermem_{name}", _HELP.get(name, "Counted by the store."))
            family.add_metric([], value)
            yield family


class _WithoutTimes(Collector):
    """Leaves out the time when each counter was made: it would be a series for each, and tell nothing.

    The library has a switch for that, but one for the whole process.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        """Yields what was counted."""
        for family in self._registry.collect():
            family.samples = [each for each in family.samples if not each.name.endswith("_created")]
            yield family


class Counting:
    """Counts each request, and answers where nothing else did (pure ASGI; the outermost layer).

    Args:
        app: What to count the requests of.
        metrics: Where they are counted.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and counts its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        start = time.perf_counter()

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        except asyncio.CancelledError:
            # The gateway ends without waiting for the store.
            if status:
                raise
            await Refusal(504, TOO_SLOW, {"Connection": "close"}).response()(scope, receive, send_counted)
        except Exception:
            _log.exception("a request of %s failed", _route(scope))
            if status:
                raise
            await Refusal(500, FAILED).response()(scope, receive, send_counted)
        finally:
            self._metrics.count(scope["method"], _route(scope), status or 499, time.perf_counter() - start)


def _route(scope: Scope) -> str:
    """Returns the template of the route, never the path: ids are no labels."""
    return getattr(scope.get("route"), "path", _OTHER)
