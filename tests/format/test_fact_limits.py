"""Hostile documents cost time and memory in proportion to their size."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from contextlib import suppress

import pytest

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.fact_canonical import read_canonical
from deermem.format.fact_markdown import decode_fact, encode_fact
from tests.format.fact_documents import FACT_ID, PATH, PLAN_EXAMPLE, SCOPE, simple_fact

FRONT = PLAN_EXAMPLE[4 : PLAN_EXAMPLE.index("\n---\n") + 1]
CANONICAL = encode_fact(simple_fact()).decode()


def fenced(front: str) -> str:
    return f"---\n{front}\n---\n\n# t\n\nc\n"


def bomb(levels: int, width: int) -> str:
    lines = [f"a0: &a0 [{', '.join(['lol'] * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return FRONT + "\n".join(lines)


HOSTILE = {
    "alias bomb": fenced(bomb(20, 8)),
    "narrow alias bomb": fenced(bomb(16, 2)),
    "aliases of a long text": fenced(f"{FRONT}a: &a {'x' * 100_000}\nb: [{'*a, ' * 30}]"),
    "nested flow lists": fenced(FRONT + "a: " + "[" * 100_000),
    "nested flow lists, one a line": fenced(FRONT + "a: " + "[\n" * 100_000),
    "nested flow mappings": fenced(FRONT + "a: " + "{a: " * 60_000),
    "nested block lists": fenced(FRONT + "a:\n " + "- " * 100_000),
    "nested keys": fenced(FRONT + "? " * 100_000),
    "nested mappings": fenced("\n".join(" " * n + "a:" for n in range(700))),
    "many keys": fenced(FRONT + "".join(f"k{n}: v\n" for n in range(20_000))),
    "many keys with comments": fenced(FRONT + "".join(f"# c\nk{n}: v\n" for n in range(4_500))),
    "many equal keys": fenced(FRONT + "k: v\n" * 40_000),
    "many items": fenced(FRONT + f"k: [{'1, ' * 80_000}]"),
    "many topics": fenced(FRONT.replace("python, runtime", "a, " * 4_000 + "b")),
    "many comments": fenced("#\n" * 120_000 + FRONT),
    "many blank lines": fenced("\n" * 200_000 + FRONT),
    "many carriage returns": fenced("\r" * 200_000 + FRONT),
    "many tags": fenced(FRONT + "a: " + "!" * 250_000),
    "many anchors": fenced(FRONT + "a: " + "&a " * 80_000),
    "many quotes": fenced(FRONT + "a: '" + "''" * 120_000),
    "many escapes": fenced(FRONT + 'a: "' + "\\u0041" * 40_000 + '"'),
    "many colons": fenced(FRONT + "a: " + "a:" * 120_000),
    "many former line breaks": fenced(FRONT + "a: '" + "\u2028" * 80_000 + "'"),
    "a long number": fenced(FRONT + "a: " + "1" * 250_000),
    "a long key": fenced(FRONT + "k" * 250_000 + ": a"),
    "a long plain text": fenced(FRONT + "a: " + "x " * 120_000),
    "front matter that is too long": fenced(FRONT + "a: " + "x" * 1_900_000),
    "front matter that is too long, quoted": fenced(FRONT + 'a: "' + "x" * 1_900_000 + '"'),
    "dashes": "-" * 2_000_000,
    "fences": "---\n" * 500_000,
    "nearly fences": "---\n" + "--- x\n" * 300_000,
    "fences with blanks": "---\n" + ("---" + " " * 2_000 + "x\n") * 950,
    "an opening fence with blanks": "---" + " " * 1_900_000,
    "blank lines": " \n" * 950_000,
    "blanks": " " * 1_900_000,
    "zeros": "\0" * 1_900_000,
    "line feeds after CRLF": PLAN_EXAMPLE.replace("\n", "\r\n") + "\r\n" * 900_000,
    "a long heading": PLAN_EXAMPLE.replace("# Runtime constraint", "#" * 1_900_000),
    "a blank heading": PLAN_EXAMPLE.replace("# Runtime constraint", "# " + " " * 1_900_000),
    "halves of conflicts": PLAN_EXAMPLE + "<<<<<<< \n" * 100_000 + "=======\n" * 100_000,
    "nearly middles of conflicts": PLAN_EXAMPLE + "<<<<<<< \n" + ("=======" + " " * 2_000 + "x\n") * 900,
    "canonical, many topics": CANONICAL.replace("topics: []", "topics: [" + "a b, " * 50_000 + "a}"),
    "canonical, many quoted topics": CANONICAL.replace("topics: []", 'topics: ["' + 'a", "' * 50_000 + 'a"}'),
    "canonical, many words": CANONICAL.replace("threadId: null", "threadId: " + "a " * 120_000),
    "canonical, one long word": CANONICAL.replace("threadId: null", "threadId: " + "a" * 250_000 + "!"),
    "canonical, many unknown keys": CANONICAL.replace("From: []\n", "From: []\n" + "a: b\n" * 50_000 + "!\n"),
    "canonical, a long fraction": CANONICAL.replace("confidence: 0.5", "confidence: 0." + "5" * 250_000),
}
# Interpreting a document may take this many bytes for each of its own, and a constant for small ones.
MEMORY_FACTOR = 6
MEMORY_CONSTANT = 6_000_000


def attempt(document: str | bytes) -> None:
    data = document.encode() if isinstance(document, str) else document
    with suppress(Corruption, UnsupportedFormat):
        decode_fact(data, path=PATH, scope=SCOPE, fact_id=FACT_ID)


@pytest.mark.timeout(20)  # each takes well below a second; what grows faster than its input takes minutes
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_ends_soon(name: str) -> None:
    assert len(HOSTILE[name]) <= 2_000_000
    attempt(HOSTILE[name])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_takes_little_memory(name: str) -> None:
    data = HOSTILE[name].encode()
    attempt(b"---\na: b\n---\nx")  # what the first use of the parser keeps is not the document's
    tracemalloc.start()
    try:
        attempt(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= MEMORY_FACTOR * len(data) + MEMORY_CONSTANT


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.startswith("canonical")])
def test_the_fast_reader_declines_what_only_begins_canonically(name: str) -> None:
    assert read_canonical(HOSTILE[name], SCOPE, FACT_ID) is None


def test_reading_and_writing_ordinary_facts_does_not_import_a_yaml_library() -> None:
    program = f"""
import sys
from deermem.format.fact_markdown import decode_fact, encode_fact
from deermem.model.identity import Scope
data = {encode_fact(simple_fact(topics=("a", "no")))!r}
fact = decode_fact(data, path="", scope=Scope.of("alice", "research-agent"), fact_id={FACT_ID!r})
assert encode_fact(fact) == data
print("yaml" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
