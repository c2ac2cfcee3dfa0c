"""URLs of databases: telling them from paths, filling in what the environment keeps, and hiding passwords.

Comes in: text that a person wrote. Goes out: text. It connects to nothing, and imports no driver.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from foveate.errors import InputError

SCHEMES = ("postgresql://", "postgres://")

OURS = ("FOVEATE_", "PG")
"""How the variables begin that a URL may hold. A settings file may have come with a repository, and must not be able to
send any other secret of the environment to a server that it names."""

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_PASSWORD = re.compile(r"(://[^:/?#]*):.*@", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][\w+.-]+://")
_SECRET = re.compile(r"password|secret|scram_", re.IGNORECASE)
"""What the names of libpq's secrets have in them."""
_WORD = re.compile(rf"((?:{_SECRET.pattern})\w*\s*=\s*)(?:'(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)
_HIDDEN = "***"


def is_url(text: object) -> bool:
    """Whether this names a database server, and not a path; a URL of another kind is refused, unseen."""
    if not isinstance(text, str):
        return False
    if text.startswith(SCHEMES):
        return True
    if _SCHEME.match(text):
        raise InputError(f"A store is a folder, or a URL that begins with {SCHEMES[0]}.")
    return False


def refers_to_database(text: str) -> bool:
    """Whether a person means a database server: its URL, or a variable that holds it."""
    return is_url(text) or _VARIABLE.fullmatch(text) is not None


def expand_env(text: str) -> str:
    """A URL with `$NAME` and `${NAME}` taken from the environment. All of it may be one variable, whatever its name."""
    whole = _VARIABLE.fullmatch(text)
    problems: list[str] = []

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if not whole and not name.startswith(OURS):
            problems.append(
                f"The store's URL may hold variables that begin with {' or '.join(OURS)}, and ${name} does not. Rename it, "
                "or have one variable hold the whole URL."
            )
        elif not os.environ.get(name):
            problems.append(f"The store's URL needs the environment variable {name}, which is not set.")
        return os.environ.get(name, "")

    filled = _VARIABLE.sub(value, text)
    if problems:
        raise InputError(problems)
    if not is_url(filled):
        raise InputError(f"A shared store is a URL that begins with {SCHEMES[0]}; a project's file needs no setting.")
    return filled


def has_password(url: str) -> bool:
    """Whether the URL itself, and not a variable in it, says the password."""
    bare = _VARIABLE.sub("", url)
    return mask_passwords(bare).replace(_HIDDEN, "") != bare


def mask_passwords(url: str) -> str:
    """The URL as it may be shown: its passwords hidden."""
    if not url.startswith(SCHEMES):  # libpq's other way to write one
        return _WORD.sub(rf"\1{_HIDDEN}", url)
    address, mark, query = _PASSWORD.sub(rf"\1:{_HIDDEN}@", url).partition("?")
    parts = [
        f"{name}={_HIDDEN}" if _SECRET.search(unquote(name)) and value else f"{name}{equals}{value}"
        for name, equals, value in (part.partition("=") for part in query.split("&"))
    ]
    return address + mark + "&".join(parts)
