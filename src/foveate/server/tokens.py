"""Bearer tokens of the service: what a caller may do, for which project, and until when.

They are stored in `.foveate/tokens.json`, which only its owner can read. The file holds the SHA-256 of each token; the token
itself is shown once, when it is created. The server reads the file again when it changes, so a revoked token ends at once.
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
from foveate.project.trusted_files import refusal
from foveate.text.atomic_write import write_file

SCOPES = ("context:read", "memory:read", "memory:write", "admin")
"""What a token can allow: contexts and their receipts; reading records; changing them; deletion, and whole stores."""

PREFIX = "fov_"
"""Beginning of every token, by which people and secret scanners recognize it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A stored token."""

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
        self._cache: tuple[tuple[int, ...], tuple[Token, ...]] = ((), ())

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
        """Create a token. Returns it and its secret, which cannot be shown again."""
        problems = [f"Unknown scope {scope!r}.{near(scope, SCOPES)}" for scope in scopes if scope not in SCOPES]
        if not name.strip() or not project.strip():
            problems.append("A token needs a name and a project.")
        if not scopes:
            problems.append(f"A token needs a scope: {', '.join(SCOPES)}.")
        if expires is not None and expires <= now():
            problems.append("expires must be in the future.")
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
        with self._lock():
            self._write([*self.list(), token])
        return token, whole

    def list(self) -> tuple[Token, ...]:
        """List all tokens, oldest first."""
        try:
            found = os.stat(self._path)
            # The inode, too: a file that was replaced within one tick of the clock can have the same time and size.
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._cache[0]:
                self._cache = (stamp, _read(self._path))
        except FileNotFoundError:
            self._cache = ((), ())
        return self._cache[1]

    def revoke(self, id: str) -> Token:
        """End a token now."""
        with self._lock():
            known = self.list()
            gone = next((token for token in known if token.id == id), None)
            if gone is None:
                raise NotFound(f"No token {id!r}. `foveate token` lists the tokens.")
            self._write([token for token in known if token is not gone])
        return gone

    def find(self, secret: str, at: int) -> Token | None:
        """Return the valid token with this secret. Every token is compared in constant time."""
        digest = _hash(secret)
        # No early return: the time must not tell how many tokens come before a matching one.
        found = [token for token in self.list() if hmac.compare_digest(token.hash, digest)]
        return found[0] if found and not found[0].is_expired(at) else None

    def _write(self, tokens: Sequence[Token]) -> None:
        document = {"version": 1, "tokens": [asdict(token) for token in tokens]}
        write_file(self._path, json.dumps(document, indent=1), private=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock of the file, so that two processes do not lose a token."""
        with open(self._path.with_suffix(".lock"), "a") as lock:
            try:
                import fcntl
            except ImportError:  # Windows has no such locks; two administrators at once are rare
                yield
                return
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _read(path: Path) -> tuple[Token, ...]:
    if reason := refusal(str(path)):
        raise StoreError(
            f"{str(path)!r} is not used, because its author would have access to the service: {reason}. If it is yours, "
            f"`foveate doctor --accept {path}`. If it is not, remove it and create the tokens again."
        )
    names = {field.name for field in fields(Token)}
    try:
        rows = json.loads(path.read_text("utf-8"))["tokens"]
        return tuple(Token(**{name: row[name] for name in names} | {"scopes": tuple(row["scopes"])}) for row in rows)
    except (ValueError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{str(path)!r} does not contain tokens ({error}). Remove it and create the tokens again."
        ) from None
