"""Durable, atomic, recoverable files: bytes and their order, no rules about memories."""
