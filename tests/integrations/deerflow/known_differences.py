"""Which of DeerFlow's own memory tests fail over this storage, and why: the heading in the document.

`docs/internals/deerflow.md` explains each reason and names each test.
"""

from __future__ import annotations

from typing import Final

ADAPTER: Final = "Its own search index is not used"
WORDS: Final = "The same error in other words"
PRIVATE: Final = "Private parts of its file storage"
NOTHING: Final = "Nothing is written where nothing is said"
DEFAULT: Final = "Facts of version 1 go to the default agent"
LEAD: Final = "An agent `lead-agent` is an agent"
CACHED: Final = "A cached state is not searched for foreign files"
AUDIT: Final = "No audit without an agent"
STAMPS: Final = "A time stamp is a time stamp"
REVISION: Final = "A manifest has a revision"
CLOCK: Final = "Fails in DeerFlow, too"

_MARKDOWN: Final = "tests/test_memory_storage_markdown.py"
_RETRIEVAL: Final = "tests/test_memory_retrieval_adapter.py"
_STORAGE: Final = "tests/test_memory_storage.py::TestFileMemoryStorage"
_ISOLATION: Final = "tests/test_memory_storage_user_isolation.py::TestUserIsolatedStorage"
_EVICTION: Final = "tests/test_memory_eviction.py"

KNOWN_DIFFERENCES: Final[dict[str, str]] = {
    f"{_RETRIEVAL}::test_deermem_create_and_restart_use_retrieval_adapter": ADAPTER,
    f"{_RETRIEVAL}::test_file_storage_close_releases_retrieval_connection": ADAPTER,
    f"{_RETRIEVAL}::test_full_rebuild_removes_stale_rows_after_markdown_delete": ADAPTER,
    f"{_RETRIEVAL}::test_lazy_warm_does_not_retry_partial_fact_failures": ADAPTER,
    f"{_RETRIEVAL}::test_lazy_warm_rebuilds_each_requested_scope": ADAPTER,
    f"{_MARKDOWN}::test_clear_all_legacy_migration_leaves_retrieval_fact_removed": ADAPTER,
    f"{_MARKDOWN}::test_explicit_migration_notifies_retrieval_adapter": ADAPTER,
    f"{_MARKDOWN}::test_full_rebuild_index_accepts_original_email_user_scope": ADAPTER,
    f"{_MARKDOWN}::test_lazy_agent_migration_notifies_retrieval_adapter": ADAPTER,
    f"{_MARKDOWN}::test_rebuild_index_continues_after_adapter_exception": ADAPTER,
    f"{_MARKDOWN}::test_single_fact_change_writes_and_notifies_only_that_fact": ADAPTER,
    f"{_MARKDOWN}::test_storage_delegates_index_lifecycle_and_search_to_retrieval": ADAPTER,
    f"{_MARKDOWN}::test_agent_fact_scope_must_match_requested_directory": WORDS,
    f"{_MARKDOWN}::test_legacy_fact_path_must_remain_below_user_directory": WORDS,
    f"{_MARKDOWN}::test_migrate_keeps_legacy_file_when_summary_conflicts": WORDS,
    f"{_MARKDOWN}::test_migration_rejects_a_different_existing_v1_backup": WORDS,
    f"{_MARKDOWN}::test_two_storage_instances_cannot_create_the_same_fact_id": WORDS,
    f"{_MARKDOWN}::test_incremental_change_does_not_scan_all_fact_files": PRIVATE,
    f"{_MARKDOWN}::test_migration_does_not_modify_v1_source_when_backup_write_fails": PRIVATE,
    f"{_MARKDOWN}::test_scope_lock_cache_releases_unused_entries": PRIVATE,
    f"{_ISOLATION}::test_cache_key_is_user_agent_tuple": PRIVATE,
    f"{_ISOLATION}::test_no_user_id_uses_legacy_path": NOTHING,
    f"{_ISOLATION}::test_user_memory_file_location": NOTHING,
    f"{_STORAGE}::test_load_creates_empty_memory": NOTHING,
    f"{_STORAGE}::test_save_writes_to_file": NOTHING,
    f"{_MARKDOWN}::test_explicit_migrate_converts_legacy_json": DEFAULT,
    f"{_MARKDOWN}::test_old_implicit_bucket_with_unknown_files_is_preserved": LEAD,
    f"{_MARKDOWN}::test_old_implicit_lead_agent_bucket_moves_to_reserved_default": LEAD,
    f"{_MARKDOWN}::test_legacy_agent_migration_merges_existing_canonical_facts": CACHED,
    f"{_MARKDOWN}::test_legacy_agent_migration_rejects_same_id_content_conflict": CACHED,
    f"{_MARKDOWN}::test_prepared_journal_restores_previous_manifest_and_fact": CACHED,
    f"{_EVICTION}::test_clear_fact_metadata_recomputes_shadow_disagreement": AUDIT,
    f"{_EVICTION}::test_file_storage_writes_bounded_metadata_only_eviction_audit": AUDIT,
    f"{_MARKDOWN}::test_partial_summary_patch_preserves_omitted_sibling_sections": STAMPS,
    f"{_STORAGE}::test_cache_not_corrupted_when_save_fails": REVISION,
    f"{_STORAGE}::test_reload_forces_cache_invalidation": REVISION,
    "tests/test_memory_updater.py::test_automatic_update_uses_hybrid_capacity_policy": CLOCK,
}
