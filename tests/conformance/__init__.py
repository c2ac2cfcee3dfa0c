"""The conformance suite: what a database must do to be a store. Subclass it, say how to open yours, run pytest.

    from conformance import StoreConformance

    class TestMyStore(StoreConformance):
        def open_store(self, tmp_path, **options):
            return MyStore(tmp_path / "state", **options)

        def open_backup(self, path):
            return MyStore(path)

Plain asserts, and no fixture but pytest's `tmp_path`. `pytest.register_assert_rewrite("conformance")` in a `conftest.py`
makes failures show their values.
"""

from __future__ import annotations

from conformance.scope import Receipts, Scopes
from conformance.search import Index, Searching, Vectors
from conformance.whole_store import Forgetting, Whole
from conformance.writing import KeepingRecords, Links, Superseding, Versions

__all__ = ["StoreConformance"]


class StoreConformance(
    KeepingRecords, Superseding, Versions, Links, Scopes, Receipts, Searching, Index, Vectors, Forgetting, Whole
):
    """Every test of the contract in `foveate.store.protocol`."""
