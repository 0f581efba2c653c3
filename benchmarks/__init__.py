"""Measures the store against what the same work costs with plain system calls.

Run as `python -m benchmarks`; what each row means and how it came out is in
`docs/internals/performance.md`.
"""
