"""URLs of databases: tell them from paths, fill in environment variables, and hide passwords. Imports no driver."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from foveate.errors import InputError

SCHEMES = ("postgresql://", "postgres://")

ALLOWED_ENV_PREFIXES = ("FOVEATE_", "PG")
"""Variables that a URL may contain begin with one of these. A settings file may have come with a repository, and must not be
able to send other secrets of the environment to a server that it names."""

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_PASSWORD = re.compile(r"(://[^:/?#]*):.*@", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][\w+.-]+://")
_SECRET_NAME = re.compile(r"password|secret|scram_", re.IGNORECASE)
"""Matches the names of libpq's parameters whose values are secret."""
_SECRET_ASSIGNMENT = re.compile(rf"((?:{_SECRET_NAME.pattern})\w*\s*=\s*)(?:'(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)
_MASK = "***"


def is_url(text: object) -> bool:
    """Return whether this is the URL of a database server, not a path. Raise InputError for a URL of another scheme."""
    if not isinstance(text, str):
        return False
    if text.startswith(SCHEMES):
        return True
    if _SCHEME.match(text):
        # The URL is not in the message, because it may contain a password.
        raise InputError(f"The store must be a folder, or a URL that begins with {SCHEMES[0]}.")
    return False


def refers_to_database(text: str) -> bool:
    """Return whether this is the URL of a database server, or a variable that contains one."""
    return is_url(text) or _VARIABLE.fullmatch(text) is not None


def expand_env(text: str) -> str:
    """Replace `$NAME` and `${NAME}` in a URL by environment variables. One variable of any name may be the whole URL."""
    is_one_variable = _VARIABLE.fullmatch(text) is not None
    problems: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if not is_one_variable and not name.startswith(ALLOWED_ENV_PREFIXES):
            problems.append(
                f"The store's URL may contain variables that begin with {' or '.join(ALLOWED_ENV_PREFIXES)}, got ${name}. "
                "Rename it, or put the whole URL into one variable."
            )
        elif not os.environ.get(name):
            problems.append(f"The store's URL contains the environment variable {name}, which is not set.")
        return os.environ.get(name, "")

    url = _VARIABLE.sub(value, text)
    if problems:
        raise InputError(problems)
    if not is_url(url):
        raise InputError(f"The URL of a shared store must begin with {SCHEMES[0]}. A project's own file needs no setting.")
    return url


def has_password(url: str) -> bool:
    """Return whether the URL contains a password itself, not only a variable for it."""
    without_variables = _VARIABLE.sub("", url)
    return mask_passwords(without_variables).replace(_MASK, "") != without_variables


def mask_passwords(url: str) -> str:
    """Return the URL with its passwords and other secrets replaced by `***`."""
    if not url.startswith(SCHEMES):  # libpq also accepts `host=... password=...`
        return _SECRET_ASSIGNMENT.sub(rf"\1{_MASK}", url)
    address, mark, query = _PASSWORD.sub(rf"\1:{_MASK}@", url).partition("?")
    parts = [
        # libpq decodes the names of parameters, so `pass%77ord` is a password, too.
        f"{name}={_MASK}" if _SECRET_NAME.search(unquote(name)) and value else f"{name}{equals}{value}"
        for name, equals, value in (part.partition("=") for part in query.split("&"))
    ]
    return address + mark + "&".join(parts)
