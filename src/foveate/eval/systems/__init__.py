"""The systems by name: foveate, and baselines to compare it with. Modules are imported on demand.

A system is written as NAME or NAME:ARGUMENT, such as `dense:model2vec:PATH`. A name with a dot is a module of your own with
a `SystemType` in the variable SYSTEM.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from foveate.errors import InputError, NotFound, near
from foveate.eval.datasets import import_from_here
from foveate.eval.model import System, SystemType

SYSTEMS = {
    "foveate": ("engine", "FOVEATE"),
    "fts5": ("baselines", "FTS5"),
    "bm25": ("baselines", "BM25"),
    "dense": ("baselines", "DENSE"),
    "recency": ("baselines", "RECENCY"),
}
"""Module and variable of each system."""


def open_system(spec: str) -> System:
    name, colon, argument = spec.partition(":")
    system_type = system_type_of(name)
    if colon and not system_type.argument:
        raise InputError(f"The system {name!r} takes no argument, got {argument!r}; write {name!r} alone.")
    if (colon or system_type.needs_argument) and not argument:
        raise InputError(f"The system {name!r} needs an argument; write `{name}:{system_type.argument}`.")
    if missing := system_type.missing():
        raise InputError(f"The system {name!r} cannot run: {missing}")
    return system_type.make(argument)


def split_specs(values: Iterable[str]) -> list[str]:
    """Split comma-separated systems and drop repeats. A part that is no system's name belongs to the argument before it.

    So `bench.systems.semble:model=PATH,whole` is one system.
    """
    specs: list[str] = []
    for part in (part.strip() for value in values for part in value.split(",") if part.strip()):
        name = part.partition(":")[0]
        if specs and ":" in specs[-1] and name not in SYSTEMS and "." not in name:
            specs[-1] += f",{part}"
        else:
            specs.append(part)
    return list(dict.fromkeys(specs))


def missing_requirement(spec: str) -> str:
    """Return what must be installed or written before a system can run, or an empty string."""
    name, _, argument = spec.partition(":")
    system_type = system_type_of(name)
    if missing := system_type.missing():
        return missing
    return f"write {name}:{system_type.argument}" if system_type.needs_argument and not argument else ""


def system_type_of(name: str) -> SystemType:
    if "." in name:
        found = getattr(import_from_here(name, name), "SYSTEM", None)
        if not isinstance(found, SystemType):
            raise InputError(f"The module {name!r} has no foveate.eval.model.SystemType named SYSTEM.")
        return found
    if name not in SYSTEMS:
        raise NotFound(f"There is no system {name!r}.{near(name, SYSTEMS)}")
    module, variable = SYSTEMS[name]
    system_type: SystemType = getattr(import_module(f"{__name__}.{module}"), variable)
    return system_type
