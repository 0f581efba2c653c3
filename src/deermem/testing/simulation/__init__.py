"""Deterministic simulation: several processes on one simulated disk, and a proof of what they saw.

    from deermem.testing.simulation.runs import simulate

    run = simulate(seed=7)
    assert not run.problems, run.story()

A seed decides everything: what the processes do, where they are interrupted, when they die and when the
power is lost. The same seed gives the same history, byte for byte. Needs the extra `deermem[testing]`.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("greenlet") is None:
    raise ModuleNotFoundError(
        'The simulation needs greenlet: pip install "deermem[testing]"', name="greenlet"
    )
