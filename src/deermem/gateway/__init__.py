"""The HTTP gateway, an optional part of the package: `pip install "deermem[server]"`."""
