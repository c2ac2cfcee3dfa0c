"""Short forms of text for people and prompts: cut to a length, on one line, counted nouns, the words of a path."""

from __future__ import annotations

SOURCE_ROOT_DIRS = frozenset(("src", "lib", "app", "apps", "pkg", "packages", "source", "internal"))
"""Folders whose names say nothing about the files in them."""

ENTRY_FILE_STEMS = frozenset(("__init__", "__main__", "index", "main", "mod", "lib"))
"""Files that represent their folder."""


def truncate(text: str, max_chars: int) -> str:
    """Return the text, or as many of its first words as fit with a `…` after them."""
    if len(text) <= max_chars:
        return text
    head = text[: max(max_chars - 1, 0)]
    space = head.rfind(" ")
    # A word longer than half of the room is cut, or next to nothing would be left.
    if space > max_chars // 2 and not text[len(head)].isspace():
        head = head[:space]
    return head.rstrip(" ,;:-\n\t") + "…"


def one_line(value: object) -> str:
    """Return a value as text without line breaks and repeated spaces."""
    return " ".join(str(value).split())


def pluralize(count: int, noun: str) -> str:
    """Return `1 day` or `1,200 days`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def component_of(path: str) -> str:
    """Return the component that a file belongs to, by its path: `auth/login` for `src/auth/login.py`."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        return path
    stem = parts[-1].split(".")[0] or parts[-1]
    folders = [part for n, part in enumerate(parts[:-1]) if n or part.lower() not in SOURCE_ROOT_DIRS]
    names = folders if stem.lower() in ENTRY_FILE_STEMS and folders else [*folders, stem]
    return "/".join(names[-2:])


def significant_path_words(path: str) -> str:
    """Return a path without the `src/` and `.py` that nearly every path has."""
    folders, _, name = path.removeprefix("./").rpartition("/")
    root, _, rest = folders.partition("/")
    return f"{rest if root.lower() in SOURCE_ROOT_DIRS else folders} {name.rsplit('.', 1)[0] or name}"
