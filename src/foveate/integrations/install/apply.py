"""Install and uninstall: works out what every file would become, writes it whole, and remembers what was there.

Comes in: files with their edits (`wanted.py`). Goes out: changes to show, and files written. What was there before is kept
beside the store, or in the user's data for the person's own settings, so that uninstalling gives back the same bytes where
nobody changed the file since; where somebody did, only our entries go. A file that several hosts share goes with the last.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from foveate.errors import InputError
from foveate.integrations.install.hosts import File, Scope, Where
from foveate.text.atomic_write import write_file

RECORD = "installed.json"
FOLDERS = (".claude", ".codex", ".cursor", ".gemini", ".agents", "skills", "foveate")
"""Folders that go when they are empty."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it is and as it will be; None: it is not there."""

    path: Path
    before: str | None
    after: str | None

    @property
    def action(self) -> str:
        if self.before == self.after:
            return "unchanged"
        return "create" if self.before is None else "remove" if self.after is None else "edit"

    def diff(self, root: Path) -> str:
        """The change as a unified diff."""
        name = str(self.path)
        with suppress(ValueError):
            name = str(self.path.relative_to(root))
        old, new = (text.splitlines(keepends=True) if text else [] for text in (self.before, self.after))
        from_name, to_name = ("/dev/null" if text is None else name for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, from_name, to_name)
        return "".join(each if each.endswith("\n") else each + "\n\\ No newline at end of file\n" for each in lines)


def planned(files: Sequence[File]) -> list[Change]:
    """What installing would change."""
    changes = []
    for file in files:
        before = _text(file.path)
        changes.append(Change(file.path, before, file.put(before or "")))
    return changes


def unplanned(files: Sequence[File], record: Mapping[str, Any], host: str) -> list[Change]:
    """What uninstalling would change."""
    changes = []
    for file in files:
        now, known = _text(file.path), record.get(str(file.path)) or {}
        if now is None or set(known.get("hosts", ())) - {host}:
            continue
        if known and _hash(now) == known["after"]:
            changes.append(Change(file.path, now, known["before"]))
            continue
        after = file.take(now)
        empty = after.strip() in ("", "{}") and (not known or known["before"] is None)
        changes.append(Change(file.path, now, None if empty and after != now else after))
    return changes


def installed(changes: Sequence[Change], files: Sequence[File], record_path: Path, host: str) -> None:
    """Write what changes, each file whole or not at all; what was there is on record before it is gone."""
    record = remembered(record_path)
    by_path = {file.path: file for file in files}
    for change in changes:
        assert change.after is not None
        known = record.get(str(change.path))
        record[str(change.path)] = {
            "before": _original(change, by_path[change.path], known),
            "after": _hash(change.after),
            "hosts": sorted({*(known or {}).get("hosts", ()), host}),
        }
        _save(record_path, record)
        _write(change)


def uninstalled(changes: Sequence[Change], files: Sequence[File], record_path: Path, host: str) -> None:
    """Write what changes, and forget what was installed."""
    for change in changes:
        _write(change)
    record = remembered(record_path)
    for file in files:
        known = record.pop(str(file.path), None)
        if known and (others := sorted(set(known.get("hosts", ())) - {host})):
            record[str(file.path)] = {**known, "hosts": others}
    _save(record_path, record)


def record_of(scope: Scope, where: Where) -> Path:
    if scope == "project":
        return where.root / ".foveate" / RECORD
    from platformdirs import user_data_path

    return user_data_path("foveate") / RECORD


def remembered(path: Path) -> dict[str, Any]:
    """What was installed before; nothing where the record is gone or cannot be read."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: each for key, each in found.items() if isinstance(each, dict) and {"before", "after"} <= each.keys()}


def _original(change: Change, file: File, known: Mapping[str, Any] | None) -> str | None:
    """The text without ours: as it was before the first time, else what is left when ours is taken out."""
    if change.before is None:
        return None
    if known and _hash(change.before) == known["after"]:
        before: str | None = known["before"]
        return before
    return file.take(change.before)


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8 text. Mend it first; nothing was written.") from None


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _write(change: Change) -> None:
    if change.action == "unchanged":
        return
    if _text(change.path) != change.before:
        raise InputError(f"{str(change.path)!r} was changed meanwhile. Nothing more was written; run the command again.")
    if change.after is None:
        change.path.unlink(missing_ok=True)
        with suppress(OSError):  # there are others' files
            for folder in change.path.parents[:3]:
                if folder.name in FOLDERS:
                    folder.rmdir()
        return
    change.path.parent.mkdir(parents=True, exist_ok=True)
    write_file(change.path, change.after)


def _save(path: Path, record: Mapping[str, Any]) -> None:
    if not record:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n", private=True)
