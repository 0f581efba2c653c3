"""What every test shares: the Hypothesis profiles and the switch from a sample to the whole."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# `--hypothesis-profile NAME` wins over the one loaded here.
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,  # the machines that run this are shared; the time-out of the test is the limit
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("deep", settings.get_profile("ci"), derandomize=False, max_examples=5_000)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the switch that `make crash` sets."""
    parser.addoption("--whole", action="store_true", help="explore every state instead of a seeded sample")


def pytest_configure() -> None:
    """Lets Ctrl-C mean something to the commands that tests start: what runs in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def whole(pytestconfig: pytest.Config) -> bool:
    """Tells whether to explore every state (True) or a seeded sample."""
    return bool(pytestconfig.getoption("whole"))
