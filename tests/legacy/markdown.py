"""Fact documents as the predecessor wrote them: block style, keys in the order they came to be set."""

from __future__ import annotations

from typing import Final

from tests.legacy.samples import GERMAN, PYTHON

_MAP_MARKDOWN: Final = """---
id: {id}
category: {category}
confidence: {confidence}
source:
  type: manual
  threadId: null
createdAt: '2026-07-01T00:00:00Z'
schemaVersion: 2
status: active
updatedAt: '2026-07-01T00:00:00Z'
revision: 1
topics: []
consolidatedFrom: []
user_id: alice
agent_name: {agent}
---

# {content}

{content}
"""
MAP_USER_MARKDOWN: Final = _MAP_MARKDOWN.format(
    id=GERMAN, category="preference", confidence=0.95, agent="null", content="Prefers answers in German."
).encode()
MAP_AGENT_MARKDOWN: Final = _MAP_MARKDOWN.format(
    id=PYTHON, category="context", confidence=0.7, agent="research", content="Uses Python 3.12."
).encode()


GERMAN_MARKDOWN: Final = b"""---
id: fact_1a2b3c4d
category: preference
confidence: 0.95
source:
  type: conversation
  threadId: thread_42
schemaVersion: 2
status: active
topics: []
consolidatedFrom: []
createdAt: '2026-07-19T08:15:30.123456Z'
updatedAt: '2026-07-19T08:15:30.123456Z'
revision: 1
user_id: alice
agent_name: __default__
---

# Prefers answers in German.

Prefers answers in German.
"""
ENGLISH_MARKDOWN: Final = (
    GERMAN_MARKDOWN.replace(b"German", b"English")
    .replace(b"updatedAt: '2026-07-19", b"updatedAt: '2026-07-27")
    .replace(b"revision: 1", b"revision: 2")
)
FRIDAYS_MARKDOWN: Final = b"""---
id: fact_5e6f7a8b
category: other
topics:
- release
- team
confidence: 1.0
source:
  type: manual
  threadId: null
schemaVersion: 2
categoryExtension: workflow
status: active
consolidatedFrom: []
createdAt: '2026-07-22T08:15:30.123456Z'
updatedAt: '2026-07-22T08:15:30.123456Z'
revision: 1
user_id: alice
agent_name: __default__
---

# No Friday deploys

Never deploys on Fridays.

The team agreed on this in May.
"""
PYTHON_MARKDOWN: Final = """---
id: fact_9c0d1e2f
category: correction
source:
  type: consolidation
  threadId: null
consolidatedFrom:
- fact_old1
- fact_old2
sourceError: said 3.11
expected_valid_days: 90
schemaVersion: 2
confidence: 0.5
status: active
topics: []
createdAt: '2026-07-24T08:15:30.123456Z'
updatedAt: '2026-07-24T08:15:30.123456Z'
revision: 1
consolidatedAt: '2026-07-24T08:15:30.123456Z'
user_id: alice
agent_name: research
---

# Uses Python 3.12, nicht 3.11: für immer.

Uses Python 3.12, nicht 3.11: für immer.
""".encode()
LISBON_MARKDOWN: Final = b"""---
id: fact_c3d4e5f6
category: identity
confidence: 0.8
source:
  type: conversation
  threadId: thread_43
schemaVersion: 2
status: active
topics: []
consolidatedFrom: []
createdAt: '2026-07-27T08:15:30.123456Z'
updatedAt: '2026-07-27T08:15:30.123456Z'
revision: 1
user_id: alice
agent_name: __default__
---

# Lives in Lisbon.

Lives in Lisbon.
"""
