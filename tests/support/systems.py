"""What the systems lack, as marks for the tests that need it."""

from __future__ import annotations

import os

import pytest

# There a file's mode tells only whether it can be written, and access lists tell the rest.
needs_modes = pytest.mark.skipif(os.name == "nt", reason="Windows has access lists, not modes")
needs_descriptors = pytest.mark.skipif(os.name == "nt", reason="Windows does not list open descriptors")
