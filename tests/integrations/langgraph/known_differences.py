"""Which of LangGraph's own store tests fail over this store, and why: the heading in the document.

`docs/internals/langgraph.md` explains each reason and names each test.
"""

from __future__ import annotations

from typing import Final

EMBEDDINGS: Final = "There are no embeddings"
STRANGE_KEYS: Final = "A strange filter key is a field that nothing has"
PERIODS: Final = "A period in a filter key is a period"
BLOCKING: Final = "Synchronous calls work in an event loop"

MEMORY: Final = "checkpoint/tests/test_store.py"
SQLITE: Final = "checkpoint-sqlite/tests/test_store.py"
ASYNC_SQLITE: Final = "checkpoint-sqlite/tests/test_async_store.py"

KNOWN_DIFFERENCES: Final[dict[str, str]] = {
    f"{MEMORY}::test_vector_store_initialization": EMBEDDINGS,
    f"{MEMORY}::test_vector_insert_with_auto_embedding": EMBEDDINGS,
    f"{MEMORY}::test_async_vector_insert_with_auto_embedding": EMBEDDINGS,
    f"{MEMORY}::test_vector_update_with_embedding": EMBEDDINGS,
    f"{MEMORY}::test_async_vector_update_with_embedding": EMBEDDINGS,
    f"{MEMORY}::test_vector_search_with_filters": EMBEDDINGS,
    f"{MEMORY}::test_async_vector_search_with_filters": EMBEDDINGS,
    f"{MEMORY}::test_async_batched_vector_search_concurrent": EMBEDDINGS,
    f"{MEMORY}::test_embed_with_path": EMBEDDINGS,
    f"{SQLITE}::test_vector_store_initialization": EMBEDDINGS,
    f"{SQLITE}::test_vector_insert_with_auto_embedding": EMBEDDINGS,
    f"{SQLITE}::test_vector_update_with_embedding": EMBEDDINGS,
    f"{SQLITE}::test_vector_search_with_filters": EMBEDDINGS,
    f"{SQLITE}::test_vector_search_pagination": EMBEDDINGS,
    f"{SQLITE}::test_vector_search_edge_cases": EMBEDDINGS,
    f"{SQLITE}::test_embed_with_path": EMBEDDINGS,
    f"{SQLITE}::test_embed_with_path_operation_config": EMBEDDINGS,
    f"{SQLITE}::test_scores": EMBEDDINGS,
    f"{ASYNC_SQLITE}::test_vector_store_initialization": EMBEDDINGS,
    f"{ASYNC_SQLITE}::test_vector_insert_with_auto_embedding": EMBEDDINGS,
    f"{ASYNC_SQLITE}::test_vector_update_with_embedding": EMBEDDINGS,
    f"{ASYNC_SQLITE}::test_vector_search_edge_cases": EMBEDDINGS,
    f"{ASYNC_SQLITE}::test_embed_with_path": EMBEDDINGS,
    f"{SQLITE}::test_sql_injection_vulnerability": STRANGE_KEYS,
    f"{SQLITE}::test_filter_keys_with_hyphens_and_digits": PERIODS,
    f"{ASYNC_SQLITE}::test_no_running_loop": BLOCKING,
}
