"""Keep the rows of a store of the newest version, for the tests of the migrations that come after it.

    python tests/migrations/make.py

Run it once when a migration is added; the file that it writes is never changed again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))


def main() -> None:
    import stores
    from foveate.store.sql import queries

    target = HERE / f"{queries.migrations('sqlite')[-1][0]:03d}.sql"
    if target.exists():
        raise SystemExit(f"{target} exists already.")
    with tempfile.TemporaryDirectory() as folder:
        stores.fill(folder, notes=4)
        target.write_text(stores.dump(Path(folder, ".foveate", "state.db")), "utf-8")


if __name__ == "__main__":
    main()
