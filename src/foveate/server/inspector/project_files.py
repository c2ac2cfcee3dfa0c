"""What the inspector writes into the project's folder: a profile, a case. Each appears whole, or not at all.

Comes in: an engine and plain values; names are checked, and none leads out of the folder. Goes out: what was written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from foveate.engine import Engine
from foveate.errors import InputError, StoreError
from foveate.integrations.install.apply import put
from foveate.pipeline import profiles
from foveate.pipeline.profiles.files import chain
from foveate.project import project

CASES = "cases.jsonl"
RECORDS = "records.jsonl"
"""Means something else beside cases: the records that they ask."""

NO_FOLDER = (
    "There is no project's folder to keep files in: this is a store alone, or another project than the one that is served. "
    "Run `foveate ui` in the folder of the project."
)
RESERVED = {"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(1, 10))}
"""Names that are no files on some systems."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_writing = Lock()
"""Of two forms at once, the second sees what the first has written."""


def keep_profile(engine: Engine, name: str, layer: Mapping[str, Any], *, replace: bool = False) -> Path:
    """Write a layer as a profile of the project. It is resolved before: one that does not hold together is not written."""
    folder(engine)
    path = engine.places[0] / f"{_checked(name, 'profile')}.toml"
    base = layer["extends"]
    if name in profiles.names(()):
        raise InputError(f"{name!r} comes with foveate, and others stand on it. Choose another name.")
    with _writing:
        if name in profiles.names(engine.places) and not replace:
            raise InputError(f"There is a profile {name!r} already. Tick “replace”, or choose another name.")
        if any(below.path == path for below in chain(base, engine.places, on_base=True)):
            raise InputError(f"{base!r} stands on the file of {name!r}, which would be replaced. Choose another name.")
        profiles.resolve(base, engine.places, {key: value for key, value in layer.items() if key != "extends"})
        text = profiles.layer_to_toml(layer)
        assert tomllib.loads(text) == layer, text
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            put(path, text)
        except OSError as error:
            raise StoreError(f"Profile {name!r} cannot be written: {error.strerror}.") from None
    return path


def keep_case(
    engine: Engine, options: Mapping[str, Any], file: str, wanted: Sequence[str], unwanted: Sequence[str]
) -> tuple[str, Mapping[str, Any]]:
    """Compute a context for good, and write it as a case into a file of the project's folder; its id and the case."""
    from foveate.eval.record import record

    path = folder(engine) / _case_file(file)
    if not wanted and not unwanted:
        raise InputError("Tick at least one record as wanted or as unwanted: a case says what should be there, or not.")
    context = engine.compute(cached=False, **options)
    with _writing:
        return context.id, record(engine, context.id, path, wanted=wanted, unwanted=unwanted)


def folder(engine: Engine) -> Path:
    """The project's own folder, made where it is not there yet."""
    if engine.root is None or not engine.places:
        raise InputError(NO_FOLDER)
    place = project.Place(engine.root)
    project.create(place)
    return place.folder


def _checked(name: str, what: str) -> str:
    if not _NAME.fullmatch(name) or name.partition(".")[0].upper() in RESERVED:
        raise InputError(
            f"{name!r} is no name for a {what}: it has letters, digits, '.', '-' and '_' only, begins with a letter or a "
            "digit, and is no longer than 64."
        )
    return name


def _case_file(file: str) -> str:
    if _checked(file, "file").lower().endswith(".jsonl") and file.lower() != RECORDS:
        return file
    raise InputError(f"Cases are kept in a file such as {CASES!r}, not in {file!r}.")
