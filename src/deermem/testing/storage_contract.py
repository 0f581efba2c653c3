"""The rules that every storage keeps, as tests to inherit.

    class TestMyStorage(StorageContract):
        def make_storage(self, root: Path, **settings: Any) -> MemoryRepository:
            return MyStorage(root, **settings)

A storage is a subclass of `MemoryRepository` that the setting `storage_class` names or that a host hands to
its manager. What it adds is its own; what hosts and other programs rely on is here.
"""

from __future__ import annotations

from deermem.testing.storage_fact_contract import ChangeRules, FactRules
from deermem.testing.storage_read_contract import PlaceRules, ReadRules
from deermem.testing.storage_seam_contract import SeamRules
from deermem.testing.storage_set_contract import PlanRules, SetRules
from deermem.testing.storage_sharing_contract import SettingRules, SharingRules

__all__ = ["StorageContract"]


class StorageContract(
    FactRules, ChangeRules, SetRules, PlanRules, ReadRules, PlaceRules, SeamRules, SharingRules, SettingRules
):
    """Tests a storage; inherit from it in a class whose name starts with `Test`.

    Each test builds its storages with `make_storage` in a temporary directory of its own and closes them.
    """
