"""Tools for tests of stores and adapters: a simulated disk, a crash explorer, contract tests."""
