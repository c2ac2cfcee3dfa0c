"""Plan and make the changes to a host's files, and undo them.

The text of each file before the first change is recorded: next to the store, or in the user's data folder for global
settings. If the file has not changed since, uninstalling restores it byte for byte. Otherwise only foveate's entries
are removed. A file that several hosts share is removed with the last of them.
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
from foveate.integrations.install.config_files import FIX_FILE, ConfigFile
from foveate.integrations.install.hosts import InstallPaths
from foveate.project.locate import DIR_NAME
from foveate.project.trusted_files import refusal
from foveate.text.atomic_write import write_file

INSTALL_RECORD_FILE = "installed.json"
REMOVABLE_DIRS = (".claude", ".codex", ".cursor", ".gemini", ".agents", "skills", "foveate")
"""Folders that are removed with their last file."""

InstallRecord = dict[str, dict[str, Any]]
"""By path of a file: its text `before`, the hash of its text `after`, and the `hosts` that use it."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of a file before and after; None if the file does not exist."""

    path: Path
    before: str | None
    after: str | None

    @property
    def action(self) -> str:
        if self.before == self.after:
            return "unchanged"
        return "create" if self.before is None else "remove" if self.after is None else "edit"

    def diff(self, root: Path) -> str:
        """Return the change as a unified diff; paths are relative to `root` where possible."""
        name = str(self.path)
        with suppress(ValueError):
            name = str(self.path.relative_to(root))
        old, new = (text.splitlines(keepends=True) if text else [] for text in (self.before, self.after))
        from_name, to_name = ("/dev/null" if text is None else name for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, from_name, to_name)
        return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def plan_install(files: Sequence[ConfigFile]) -> list[FileChange]:
    texts = [_read_text(file.path) for file in files]
    return [FileChange(file.path, text, file.add_foveate(text or "")) for file, text in zip(files, texts, strict=True)]


def plan_uninstall(files: Sequence[ConfigFile], record: InstallRecord, host: str) -> list[FileChange]:
    changes = []
    for file in files:
        text, entry = _read_text(file.path), record.get(str(file.path))
        if text is None or set((entry or {}).get("hosts", ())) - {host}:
            continue
        if entry and _hash(text) == entry["after"]:
            changes.append(FileChange(file.path, text, entry["before"]))
            continue
        after = file.remove_foveate(text)
        is_empty = after.strip() in ("", "{}") and (entry is None or entry["before"] is None)
        changes.append(FileChange(file.path, text, None if is_empty and after != text else after))
    return changes


def install(changes: Sequence[FileChange], files: Sequence[ConfigFile], record_path: Path, host: str) -> None:
    """Write the changes. The previous text of each file is recorded before the file changes."""
    record = load_install_record(record_path)
    files_by_path = {file.path: file for file in files}
    for change in changes:
        assert change.after is not None
        entry = record.get(str(change.path))
        record[str(change.path)] = {
            "before": _text_without_foveate(change, files_by_path[change.path], entry),
            "after": _hash(change.after),
            "hosts": sorted({*(entry or {}).get("hosts", ()), host}),
        }
        _save_install_record(record_path, record)
        _write(change)


def uninstall(changes: Sequence[FileChange], files: Sequence[ConfigFile], record_path: Path, host: str) -> None:
    """Write the changes and remove the host from the record."""
    for change in changes:
        _write(change)
    record = load_install_record(record_path)
    for file in files:
        entry = record.pop(str(file.path), None)
        if entry and (other_hosts := sorted(set(entry.get("hosts", ())) - {host})):
            record[str(file.path)] = {**entry, "hosts": other_hosts}
    _save_install_record(record_path, record)


def install_record_path(paths: InstallPaths, *, is_global: bool) -> Path:
    if not is_global:
        return paths.root / DIR_NAME / INSTALL_RECORD_FILE
    from platformdirs import user_data_path

    return user_data_path("foveate") / INSTALL_RECORD_FILE


def load_install_record(path: Path) -> InstallRecord:
    """Return what was installed; empty if the record is missing, unreadable or written by someone else."""
    if refusal(str(path)):
        return {}
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: entry for key, entry in record.items() if isinstance(entry, dict) and {"before", "after"} <= entry.keys()}


def _save_install_record(path: Path, record: InstallRecord) -> None:
    if not record:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n", private=True)


def _text_without_foveate(change: FileChange, file: ConfigFile, entry: Mapping[str, Any] | None) -> str | None:
    """Return the text to restore: as recorded if the file is unchanged since, else the present text without our entries."""
    if change.before is None:
        return None
    if entry and _hash(change.before) == entry["after"]:
        recorded: str | None = entry["before"]
        return recorded
    return file.remove_foveate(change.before)


def _read_text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")  # `read_text` would change the line ends
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8 text. {FIX_FILE}") from None


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _write(change: FileChange) -> None:
    if change.action == "unchanged":
        return
    if _read_text(change.path) != change.before:  # the user may have taken a while to confirm
        raise InputError(f"{str(change.path)!r} has changed since. No more files were written; run the command again.")
    if change.after is None:
        change.path.unlink(missing_ok=True)
        with suppress(OSError):  # a folder with other files is not removed
            for folder in change.path.parents[:3]:
                if folder.name in REMOVABLE_DIRS:
                    folder.rmdir()
        return
    change.path.parent.mkdir(parents=True, exist_ok=True)
    write_file(change.path, change.after)
