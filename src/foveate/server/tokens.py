"""Bearer tokens of the service: who may do what, for which project, and until when.

Kept in `.foveate/tokens.json`, readable by its owner alone. A token itself is shown once, when it is made; the file holds
its SHA-256. The server reads the file again when it changed, so that a revoked token ends at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from foveate.clock import iso, millis, now
from foveate.errors import InputError, NotFound, StoreError, near
from foveate.text.atomic_write import write_file

SCOPES = ("context:read", "memory:read", "memory:write", "admin")
"""What a token allows: contexts and why they are so; records; changing records; what cannot be undone, and whole stores."""

PREFIX = "fov_"
"""How a token begins, so that people and scanners know it for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it is kept."""

    id: str
    name: str
    hash: str
    scopes: tuple[str, ...]
    project: str
    user: str | None = None
    agent: str | None = None
    created: str
    expires: str | None = None

    def is_expired(self, at: int) -> bool:
        return self.expires is not None and millis(self.expires) <= at


class Tokens:
    """The tokens of one project's service."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: tuple[tuple[int, ...], tuple[Token, ...]] = ((), ())

    def create(
        self,
        name: str,
        scopes: Sequence[str],
        project: str,
        *,
        user: str | None = None,
        agent: str | None = None,
        expires: int | None = None,
    ) -> tuple[Token, str]:
        """A new token: as it is kept, and the secret that is shown this once."""
        problems = [f"There is no scope {scope!r}.{near(scope, SCOPES)}" for scope in scopes if scope not in SCOPES]
        if not name.strip() or not project.strip():
            problems.append("A token needs a name and a project.")
        if not scopes:
            problems.append(f"A token needs a scope: {', '.join(SCOPES)}.")
        if expires is not None and expires <= now():
            problems.append("A token that has expired already is of no use; name a time to come.")
        if problems:
            raise InputError(problems)
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        whole = f"{PREFIX}{id}_{secret}"
        token = Token(
            id=id,
            name=name,
            hash=_hash(whole),
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            project=project,
            user=user,
            agent=agent,
            created=iso(now()),
            expires=None if expires is None else iso(expires),
        )
        with self._changing():
            self._write([*self.list(), token])
        return token, whole

    def list(self) -> tuple[Token, ...]:
        """Every token, in the order in which they were made."""
        try:
            found = os.stat(self._path)
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._held[0]:
                self._held = (stamp, _read(self._path))
        except FileNotFoundError:
            self._held = ((), ())
        return self._held[1]

    def revoke(self, id: str) -> Token:
        """Have a token end now."""
        with self._changing():
            known = self.list()
            gone = next((token for token in known if token.id == id), None)
            if gone is None:
                raise NotFound(f"There is no token {id!r}. `foveate token list` shows them.")
            self._write([token for token in known if token is not gone])
        return gone

    def find(self, secret: str, at: int) -> Token | None:
        """The token that a secret belongs to, where it holds; every one is compared, in constant time."""
        digest = _hash(secret)
        found = [token for token in self.list() if hmac.compare_digest(token.hash, digest)]
        return found[0] if found and not found[0].is_expired(at) else None

    def _write(self, tokens: Sequence[Token]) -> None:
        document = {"version": 1, "tokens": [asdict(token) for token in tokens]}
        write_file(self._path, json.dumps(document, indent=1), private=True)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One process at a time, so that no token is lost."""
        with open(self._path.with_suffix(".lock"), "a") as lock:
            try:
                import fcntl
            except ImportError:  # no such locks on Windows: two administrators at once are rare
                yield
                return
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _read(path: Path) -> tuple[Token, ...]:
    names = {field.name for field in fields(Token)}
    try:
        rows = json.loads(path.read_text("utf-8"))["tokens"]
        return tuple(Token(**{name: row[name] for name in names} | {"scopes": tuple(row["scopes"])}) for row in rows)
    except (ValueError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise StoreError(f"{str(path)!r} is no file of tokens ({error}). Remove it and make the tokens anew.") from None
