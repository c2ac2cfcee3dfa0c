"""A profile's name and a file of settings -> foveate as it is to be evaluated.

Evaluations run in folders of their own, where a project's profiles are not seen. So its layers above the shipped ones become
overrides: found wherever the evaluation runs, and part of what its rows depend on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foveate.errors import InputError, NotFound
from foveate.eval.model import Suite
from foveate.eval.overrides import together
from foveate.eval.systems.engine import Foveate
from foveate.pipeline import profiles
from foveate.pipeline.profiles.files import BASE, BUILTIN, chain

ABOUT = ("name", "description", "extends")
"""What a profile says of itself."""


def variant(suite: Suite, profile: str | None, overrides: Path | None, places: Sequence[Path] = ()) -> Foveate:
    """foveate with a profile, or a suite's own, and a TOML file laid over it; both are checked here."""
    table = _table(overrides) if overrides else {}
    profiles.resolve(profile or suite.profile or BASE, places if profile else (), call=table)
    shipped, settings = _layers(profile, places) if profile else (None, {})
    told = [f"profile={profile}"] if profile else []
    told += [f"overrides={overrides.stem}"] if overrides else []
    return Foveate(f"foveate:{','.join(told)}" if told else "foveate", shipped, together(settings, table))


def _layers(profile: str, places: Sequence[Path]) -> tuple[str, dict[str, Any]]:
    """The shipped profile that one stands on, and all that is laid over it."""
    shipped = BASE
    settings: dict[str, Any] = {}
    for layer in chain(profile, places, on_base=True):
        if layer.path.parent == BUILTIN:
            shipped, settings = layer.name, {}
        else:
            settings = together(settings, _settings(layer.table))
    return shipped, settings


def _settings(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in ABOUT}


def _table(path: Path) -> dict[str, Any]:
    try:
        return _settings(tomllib.loads(path.read_text("utf-8-sig")))
    except FileNotFoundError:
        raise NotFound(f"There is no file {str(path)!r} with overrides.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not valid TOML: {error}.") from None
