"""The conformance suite, which every store must pass. Subclass it, implement `open_store` and run pytest.

    from conformance import StoreConformance

    class TestMyStore(StoreConformance):
        def open_store(self, tmp_path, **options):
            return MyStore(tmp_path / "state", **options)

        def open_backup(self, path):
            return MyStore(path)

The only fixture is pytest's `tmp_path`. `pytest.register_assert_rewrite("conformance")` in a `conftest.py`
makes failures show their values.
"""

from __future__ import annotations

from conformance.scope import Receipts, Scopes
from conformance.search import Index, Searching, Vectors
from conformance.whole_store import Forgetting, Whole
from conformance.writing import AddingRecords, Links, Superseding, Versions

__all__ = ["StoreConformance"]


class StoreConformance(
    AddingRecords, Superseding, Versions, Links, Scopes, Receipts, Searching, Index, Vectors, Forgetting, Whole
):
    """All tests of the protocol in `foveate.store.protocol`."""
