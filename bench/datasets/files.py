"""Small helpers for the data of the suites in this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from foveate.errors import InputError


def cache_dir(name: str) -> Path:
    """Return the folder in which a suite may keep files from run to run."""
    return user_cache_path("foveate") / "eval" / name


def require_strings(value: Any, location: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{location} must be a list of texts, got {value!r}.")
    return value


def parse_count(value: str, option: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise InputError(f"The option {option!r} must be a whole number, got {value!r}.")
    return int(value)
