"""Data sets as users have them: a file, or a folder that holds it; plain errors where it is not what it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from foveate.errors import InputError, NotFound

PIECE = 1 << 20


def find(path: Path, suite: str, *patterns: str) -> Path:
    """The file itself, or the one in the folder, or in the folder `suite` in it, whose name fits."""
    if path.is_file():
        return path
    for folder in (path, path / suite):
        for pattern in patterns:
            found = sorted(folder.glob(pattern))
            if len(found) > 1:
                names = ", ".join(one.name for one in found)
                raise InputError(f"{str(folder)!r} holds several files that fit ({names}); name one of them.")
            if found:
                return found[0]
    wanted = " or ".join(patterns)
    if not path.exists():
        raise NotFound(f"{str(path)!r} does not exist; name the data of {suite!r}: {wanted}.")
    raise NotFound(f"{str(path)!r} holds no data of {suite!r}: {wanted} is looked for.")


@contextmanager
def reading(path: Path) -> Iterator[IO[str]]:
    """A text file that is UTF-8, with a mark of that at its beginning or without."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield file
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8; save it as such.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def parsed(path: Path) -> Any:
    with reading(path) as file:
        try:
            return json.load(file)
        except json.JSONDecodeError as error:
            raise InputError(f"{str(path)!r} is not JSON: {error}.") from None


def cache_folder(name: str) -> Path:
    """Where a suite may keep what it lays out, from run to run."""
    from platformdirs import user_cache_path

    return user_cache_path("foveate") / "eval" / name


def strings(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(f"{where} is not a list of texts.")
    return value


def whole(value: str, option: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise InputError(f"The option {option!r} is {value!r}; a whole number is wanted.")
    return int(value)


def lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The documents of a JSONL file with the numbers of their lines; empty lines are passed over."""
    with reading(path) as file:
        for n, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield n, json.loads(line)
                except ValueError as error:
                    raise InputError(f"{str(path)!r}, line {n}, is not JSON: {error}.") from None


class Misshapen(ValueError):
    """What is wrong with a part of the data, in plain words; `shaped` says where it is and what is wanted."""


@contextmanager
def shaped(place: str, form: str) -> Iterator[None]:
    """An error that says how the data should look, where it looks otherwise."""
    try:
        yield
        return
    except KeyError as error:
        said = f"{error} is missing"
    except Misshapen as error:
        said = str(error)
    except (TypeError, AttributeError, ValueError, IndexError):
        said = "something in it is of another type or length"
    raise InputError(f"{place}: {said}. Wanted: {form}.")


def content(value: Any) -> str:
    """What a message says: a text, the texts of its parts, or nothing."""
    if isinstance(value, list):
        return "\n".join(part["text"] for part in value if isinstance(part.get("text"), str))
    if not isinstance(value, str | None):
        raise Misshapen(f"a message says {value!r}, which is no text")
    return value or ""


def moment(value: Any, *forms: str) -> str | None:
    """A date as ISO 8601, from that or from one of the forms of `strptime`; none where it is no date."""
    for form in ("", *forms):
        try:
            found = datetime.strptime(str(value), form) if form else datetime.fromisoformat(str(value))
        except ValueError:
            continue
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()
    return None


def dated(text: str, form: str, example: str) -> str:
    """A date that must be there, as ISO 8601."""
    found = moment(text, form)
    if found is None:
        raise Misshapen(f"{text!r} is no date such as {example}")
    return found


def digest(paths: Sequence[Path]) -> str:
    """A short name for the present content of files, folders included."""
    hashed = blake2b(digest_size=6)
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        for file in files if path.is_dir() else [path]:
            hashed.update(str(file.relative_to(path)).encode())
            with file.open("rb") as opened:
                while piece := opened.read(PIECE):
                    hashed.update(piece)
    return hashed.hexdigest()
