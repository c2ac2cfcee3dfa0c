"""Data files of users: find them, read them and explain what is wrong with them; and the lock of a file in use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from foveate.errors import InputError, NotFound

READ_CHUNK_BYTES = 1 << 20


def find_data_file(path: Path, suite: str, *patterns: str) -> Path:
    """Return the path if it is a file, else the file that matches a pattern in the folder or in its subfolder `suite`."""
    if path.is_file():
        return path
    for folder in (path, path / suite):
        for pattern in patterns:
            matches = sorted(folder.glob(pattern))
            if len(matches) > 1:
                names = ", ".join(match.name for match in matches)
                raise InputError(f"{str(folder)!r} contains several files that match ({names}); name one of them.")
            if matches:
                return matches[0]
    expected = " or ".join(patterns)
    if not path.exists():
        raise NotFound(f"{str(path)!r} does not exist; name the data of {suite!r}: {expected}.")
    raise NotFound(f"{str(path)!r} contains no data of {suite!r}: no file matches {expected}.")


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a UTF-8 file, with or without a byte order mark."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield file
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8; convert it to UTF-8.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def load_json(path: Path) -> Any:
    with open_text(path) as file:
        try:
            return json.load(file)
        except json.JSONDecodeError as error:
            raise InputError(f"{str(path)!r} is not JSON: {error}.") from None


def read_jsonl(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the documents of a JSONL file with their line numbers, without empty lines."""
    with open_text(path) as file:
        for n, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield n, json.loads(line)
                except ValueError as error:
                    raise InputError(f"{str(path)!r}, line {n}, is not JSON: {error}.") from None


class MalformedData(ValueError):
    """An error in a part of the data. `data_errors_at` adds the place and the expected format."""


@contextmanager
def data_errors_at(location: str, expected_format: str) -> Iterator[None]:
    """Turn errors of reading a document's parts into an InputError with the location and the expected format."""
    try:
        yield
        return
    except KeyError as error:
        problem = f"{error} is missing"
    except MalformedData as error:
        problem = str(error)
    except (TypeError, AttributeError, ValueError, IndexError):
        problem = "a value has the wrong type or length"
    raise InputError(f"{location}: {problem}. Expected: {expected_format}.")


def message_text(value: Any) -> str:
    """Return the text of a message's content: a string, the texts of a list of parts, or nothing."""
    if isinstance(value, list):
        return "\n".join(part["text"] for part in value if isinstance(part.get("text"), str))
    if not isinstance(value, str | None):
        raise MalformedData(f"the content of a message must be text, got {value!r}")
    return value or ""


def parse_date(value: Any, *formats: str) -> str | None:
    """Return a date as ISO 8601, from ISO 8601 or one of the `strptime` formats; None if it is no date."""
    for date_format in ("", *formats):
        try:
            date = datetime.strptime(str(value), date_format) if date_format else datetime.fromisoformat(str(value))
        except ValueError:
            continue
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).isoformat()
    return None


def require_date(text: str, date_format: str, example: str) -> str:
    """Return a date as ISO 8601, or raise MalformedData."""
    date = parse_date(text, date_format)
    if date is None:
        raise MalformedData(f"{text!r} is not a date such as {example}")
    return date


def digest(paths: Sequence[Path]) -> str:
    """Return a short hash of the content of files and folders."""
    content = blake2b(digest_size=6)
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        for file in files if path.is_dir() else [path]:
            content.update(str(file.relative_to(path)).encode())
            with file.open("rb") as opened:
                while chunk := opened.read(READ_CHUNK_BYTES):
                    content.update(chunk)
    return content.hexdigest()


def lock(file: int | IO[bytes], busy_message: str) -> None:
    """Lock an open file until it is closed. Raises InputError with the message if another process holds the lock."""
    try:
        import fcntl
    except ImportError:
        return  # Windows has no such lock
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(busy_message) from None
    except OSError:
        return  # some network file systems have no locks, and an evaluation must run there, too
