"""Search over facts: the substring search, the port for retrieval adapters, and what keeps an index current.

Everything here is derived from the facts. It may be lost at any time and is never trusted.
"""
