"""The fact document: a fact as Markdown with YAML front matter (plan section 5, contract section 2).

Writing always gives the canonical form (`fact_writer`). Reading first tries a strict pattern for that form
(`fact_canonical`), which keeps a cold read near the cost of the disk; everything else goes through the
full parser (`fact_envelope`, `yaml_tree`, `fact_reader`). Where both read a document they agree.
"""

from __future__ import annotations

from deermem.errors import Corruption, InvalidInputError, UnsupportedFormat
from deermem.format.fact_canonical import read_canonical
from deermem.format.fact_envelope import MAX_FILE_BYTES, NotAFactDocument, open_envelope, split_body
from deermem.format.fact_writer import encode_fact
from deermem.model.fact import SCHEMA_VERSION, Fact
from deermem.model.identity import FactId, Scope

__all__ = ["MAX_FILE_BYTES", "decode_fact", "encode_fact"]


def decode_fact(data: bytes, *, path: str, scope: Scope, fact_id: FactId) -> Fact:
    """Reads a fact document.

    Args:
        data: The whole file.
        path: What errors call the file.
        scope: Where the file lies; the fact refers to this object.
        fact_id: The stem of the file's name.

    Raises:
        Corruption: The document cannot be trusted; the reason names the line or the field.
        UnsupportedFormat: The document has a newer schema.
    """
    if len(data) > MAX_FILE_BYTES:
        raise Corruption(path, f"is larger than {MAX_FILE_BYTES:,} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Corruption(path, f"is not UTF-8 at byte {error.start:,}", "save the file as UTF-8") from None
    fact = read_canonical(text, scope, fact_id)
    return decode_text(text, path, scope, fact_id) if fact is None else fact


def decode_text(text: str, path: str, scope: Scope, fact_id: FactId) -> Fact:
    """Reads a fact document with the full parser; arguments and errors are those of `decode_fact`."""
    # PyYAML takes long to import and is rarely needed.
    from deermem.format import fact_reader, yaml_nodes, yaml_tree

    try:
        envelope = open_envelope(text)
    except NotAFactDocument as error:
        raise Corruption(path, error.reason, error.hint) from None
    try:
        front = yaml_tree.parse_front_matter(envelope.front)
        return fact_reader.read_fact(front, *split_body(envelope.body), scope, fact_id)
    except yaml_nodes.UnreadableYaml as error:
        where = "" if error.line is None else f"line {error.line + envelope.line - 1}: "
        raise Corruption(path, where + error.reason) from None
    except InvalidInputError as error:
        raise Corruption(path, str(error)) from None
    except fact_reader.OtherVersion as error:
        raise UnsupportedFormat(path, str(error), str(SCHEMA_VERSION)) from None
