"""Model values to bytes and back: one module for each kind of file on disk."""
