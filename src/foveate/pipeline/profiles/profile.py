"""Merge layers into a profile: default <- profile <- frame <- input <- agent <- complexity <- call.

The result names the layer that set each value. All problems are reported at once. Tokens are allocated elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from foveate.errors import ProfileError, near
from foveate.pipeline.profiles.files import DEFAULT, VARIANTS, Layer, chain, variant_layers
from foveate.pipeline.profiles.frames import load_frames
from foveate.pipeline.profiles.settings import (
    CALL_LAYER,
    POSITIVE_INT,
    check_layer,
    check_variant,
    layer_label,
    unknown_name,
)
from foveate.records.kinds import KINDS
from foveate.types import LEVELS, MAX_FILE_CHARS, Profile, Slot

_METADATA_KEYS = ("name", "description", "extends", "complexity", "input")
"""Settings of a layer that are not inherited as they are."""
_SIZE_KEYS = ("tokens", "share")
_DEFAULTS = {field.name: field.default for field in fields(Slot)}
_RULE_SLOT_KEYS = ("source", "keep", "pinned_only", "max_items", "max_candidates", "min_score")
"""Settings of a slot that decide whether all of its rules are shown."""
_RETIRE_RULES = "To stop a rule, retire the rule itself."

MAX_MERGED_PROFILES = 64
_merged_profiles: dict[tuple[Any, ...], tuple[Sequence[Layer], Profile]] = {}


def resolve(
    names: str | Sequence[str],
    dirs: Sequence[Path] = (),
    call: Mapping[str, Any] | None = None,
    total: int | None = None,
) -> Profile:
    """Merge the named layers and the settings of a call into a profile.

    The first name is the profile, which extends `default` unless it says otherwise. Further names are merged over it: tables
    such as `complexity.easy` and `frames.debug`, and profiles with what they extend by name. No file is merged twice. `call`
    is the last layer. `total` is the budget of this call; the profile remembers the total that it is written for.
    """
    profile, problems = _resolve(names, dirs, call, total)
    if profile is None:
        raise ProfileError("\n".join(problems))
    return profile


def check(path_or_name: str | Path, dirs: Sequence[Path] = ()) -> list[str]:
    """Return the problems of a profile, by name or by file."""
    path = Path(path_or_name)
    if path.suffix != ".toml":
        return _resolve(str(path_or_name), dirs, None, None)[1]
    if not path.is_file():
        return [f"File {str(path)!r} does not exist."]
    return _resolve(path.stem, (path.parent, *dirs), None, None)[1]


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one layer over another: values and lists replace, tables merge key by key.

    In a slot, `remove = true` removes it, and `tokens` and `share` replace each other. The operation is associative for
    layers that agree on what is a table and that remove nothing.
    """
    missing = _missing_removals(below, above)
    if missing:
        raise ProfileError("\n".join(f"Slot {slot!r} cannot be removed: it does not exist.{hint}" for slot, hint in missing))
    return _overlay(below, above)


# --- merging -------------------------------------------------------------------------------------------------------


def _missing_removals(below: Mapping[str, Any], above: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the slots that cannot be removed because they do not exist, each with a near match."""
    there = below.get("slots", {})
    return [
        (slot, near(slot, there))
        for slot, values in above.get("slots", {}).items()
        if values.get("remove") and not values.get("optional") and slot not in there
    ]


def _rule_slot_problems(label: str, below: Mapping[str, Any], above: Mapping[str, Any]) -> list[str]:
    """Return a problem for each setting that would drop a person's rules from every prompt without a word."""
    problems = []
    for slot, values in above.items():
        base = below.get(slot, {})
        rules = [kind for kind in base.get("kinds", ()) if kind in KINDS and KINDS[kind].is_rule]
        changed = [key for key in _RULE_SLOT_KEYS if key in values and values[key] != base.get(key, _DEFAULTS[key])]
        changed += ["kinds"] if not set(rules) <= set(values.get("kinds", rules)) else []
        if rules and values.get("remove"):
            problems.append(f"{layer_label(label)} removes slot {slot!r}, which shows rules. {_RETIRE_RULES}")
        elif rules and changed:
            names = " and ".join(changed)
            problems.append(f"{layer_label(label)} changes {names} of slot {slot!r}, which shows rules. {_RETIRE_RULES}")
    return problems


def _overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = _merge(below, {key: value for key, value in above.items() if key != "slots"})
    if "slots" in above:
        merged["slots"] = _overlay_slots(below.get("slots", {}), above["slots"])
    return merged


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old if isinstance(old, Mapping) else {}, value) if isinstance(value, Mapping) else value
    return merged


def _overlay_slots(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    slots = dict(below)
    for name, values in above.items():
        if values.get("remove"):
            slots.pop(name, None)
            continue
        has_size = any(key in values for key in _SIZE_KEYS)
        kept = {key: old for key, old in slots.get(name, {}).items() if not (has_size and key in _SIZE_KEYS)}
        slots[name] = kept | {key: value for key, value in values.items() if key != "remove"}
    return slots


# --- resolving -----------------------------------------------------------------------------------------------------


def _resolve(
    names: str | Sequence[str], dirs: Sequence[Path], call: Mapping[str, Any] | None, total: int | None
) -> tuple[Profile | None, list[str]]:
    names = [names] if isinstance(names, str) else names or [DEFAULT]
    files, unreadable = _files(names, dirs)
    problems = _call_problems(call or {}, total)
    if unreadable or problems:
        return None, [*unreadable, *_merge_layers(names, files, call or {}, complete=not unreadable)[1], *problems]
    # Merging takes a tenth of a context, and most calls set nothing but the total. A parsed file stays the same object until
    # the file changes; the value holds the layers, so that the id of a table in the key is not used again.
    key = (tuple(names), tuple((file.label, file.path, id(file.table)) for file in files))
    merged = None if call else _merged_profiles.get(key)
    if merged is None:
        profile, problems = _merge_layers(names, files, call or {})
        if profile is None:
            return None, problems
        merged = files, profile
        if not call:
            if len(_merged_profiles) >= MAX_MERGED_PROFILES:
                _merged_profiles.clear()
            _merged_profiles[key] = merged
    profile = merged[1]
    frame = next((name.partition(".")[2] for name in names if name.startswith("frames.")), "")
    if frame:
        profile = replace(profile, frame=load_frames(dirs)[frame])
    return _with_total(profile, total), []


def _merge_layers(
    names: Sequence[str], files: Sequence[Layer], call: Mapping[str, Any], *, complete: bool = True
) -> tuple[Profile | None, list[str]]:
    """Return the profile of some layers and the settings of a call, or None and all problems.

    If a layer is missing, the others are checked one by one. Their slots may have been defined by the missing one.
    """
    problems: list[str] = []
    merged: dict[str, Any] = {}
    setters: dict[str, str] = {}
    invalid: set[str] = set()
    for label, table in [*((file.label, file.table) for file in files), (CALL_LAYER, call)]:
        layer = check_variant(label, table) if _is_variant(label) else check_layer(label, table)
        own = {key: value for key, value in layer.layer.items() if key not in (*_METADATA_KEYS, "frame")}
        problems += layer.problems
        problems += [
            f"{layer_label(label)} removes slot {slot!r}, which does not exist.{hint}"
            for slot, hint in _missing_removals(merged, own)
        ]
        problems += _rule_slot_problems(label, merged.get("slots", {}), own.get("slots", {}))
        merged = _overlay(merged, own)
        setters |= dict.fromkeys(_paths(own), label)
        invalid |= layer.invalid
    if not complete:
        return None, problems
    slots = merged.get("slots", {})
    merged["slots"] = {slot: values for slot, values in slots.items() if not _is_unused_slot(values)}
    sound = {slot: values for slot, values in merged["slots"].items() if slot not in invalid}
    problems += _slots_problems(" + ".join(names), sound, setters)
    problems += _size_problems(" + ".join(names), merged | {"slots": sound}, total_is_wrong="total" in invalid)
    if problems:
        return None, problems
    name = next(file.table.get("name", file.name) for file in files if file.label == names[0])
    return _build_profile(name, merged, {path: setters[path] for path in _paths(merged)}), []


def _is_variant(name: str) -> bool:
    return name.partition(".")[0] in VARIANTS and "." in name


def _files(names: Sequence[str], dirs: Sequence[Path]) -> tuple[list[Layer], list[str]]:
    """Return every layer, bottom first and each once, and what could not be read."""
    layers: dict[tuple[Path, str], Layer] = {}
    problems: list[str] = []
    profile: list[Layer] = []
    for index, name in enumerate(names):
        try:
            if index and _is_variant(name):
                found = variant_layers(name, profile, dirs)
            else:
                found = chain(name, dirs, on_default=index == 0)
        except ProfileError as error:
            problems.append(str(error))
        else:
            profile = profile or found
            for layer in found:
                layers.setdefault((layer.path, layer.label), layer)
    return list(layers.values()), problems


def _is_unused_slot(values: Mapping[str, Any]) -> bool:
    """Return whether a slot is optional and no layer gave it a source, so that this profile does not have it."""
    return bool(values.get("optional")) and "source" not in values


def _paths(layer: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Return the dotted path of every value of a profile."""
    for key, value in layer.items():
        if isinstance(value, Mapping):
            yield from _paths(value, f"{prefix}{key}.")
        elif key != "optional":
            yield prefix + key


# --- checking the merged profile ------------------------------------------------------------------------------------


def _call_problems(call: Mapping[str, Any], total: int | None) -> list[str]:
    problems = []
    if "extends" in call:
        problems.append("The call cannot extend a profile; name the profile instead.")
    if total is not None and not POSITIVE_INT.is_valid(total):
        problems.append(f"The call: total must be {POSITIVE_INT.description}, got {total!r}.")
    return problems


def _slots_problems(name: str, slots: Mapping[str, Any], setters: Mapping[str, str]) -> list[str]:
    problems = []
    there = [slot for slot, values in slots.items() if "source" in values]
    for slot, values in slots.items():
        level, max_level = (values.get(name, _DEFAULTS[name]) for name in ("level", "max_level"))
        if "source" not in values:
            setter = next((setters[path] for path in _paths(values, f"slots.{slot}.")), name)
            problems.append(unknown_name(setter, "slot", slot, there) + " A new slot needs a source.")
        elif not any(key in values for key in _SIZE_KEYS):
            problems.append(f"{layer_label(name)}: slot {slot!r} has neither tokens nor share; give it one of them.")
        if LEVELS.index(max_level) > LEVELS.index(level):
            lengths = f"has level {level!r}, longer than its max_level {max_level!r}"
            problems.append(f"{layer_label(name)}: slot {slot!r} {lengths}.")
    return problems


def _size_problems(name: str, merged: Mapping[str, Any], *, total_is_wrong: bool) -> list[str]:
    slots = merged["slots"].values()
    shares = [slot["share"] for slot in slots if "share" in slot]
    problems = []
    if shares and sum(shares) <= 0:
        problems.append(f"{layer_label(name)}: the shares sum to 0; give one slot a share above 0.")
    total, reserve = merged.get("total"), merged.get("reserve", 0)
    if total is None:
        return problems if total_is_wrong else [*problems, f"{layer_label(name)} has no total."]
    kept = sum(slot.get("tokens", 0) for slot in slots if slot.get("keep"))
    if reserve >= total:
        problems.append(f"{layer_label(name)}: the reserve of {reserve} leaves nothing of the total of {total}.")
    elif kept + reserve > total:
        problems.append(
            f"{layer_label(name)}: keep slots ({kept}) and reserve ({reserve}) exceed the total of {total} "
            f"by {kept + reserve - total} tokens."
        )
    return problems


# --- building ------------------------------------------------------------------------------------------------------


def _build_profile(name: str, merged: Mapping[str, Any], setters: Mapping[str, str]) -> Profile:
    slots = [_slot(slot, values) for slot, values in merged["slots"].items()]
    numbers = ("half_life_hours", "vector_weight", "expansion_weight", "flexible_share")
    settings: dict[str, Any] = {key: float(merged[key]) for key in numbers if key in merged}
    for table in ("weights", "fields"):
        settings[table] = {key: float(weight) for key, weight in merged.get(table, {}).items()}
    return Profile(
        name=name,
        total=merged["total"],
        written_for=merged["total"],
        reserve=merged.get("reserve", 0),
        slots=tuple(sorted(slots, key=lambda slot: (not slot.stable, slot.order, slot.name))),
        max_file_chars=merged.get("max_file_chars", MAX_FILE_CHARS),
        choose_frame=merged.get("choose_frame", False),
        layers=_provenance(setters, merged["slots"]),
        **settings,
    )


def _provenance(setters: Mapping[str, str], slots: Mapping[str, Any]) -> dict[str, str]:
    """Return the layer that set each value. For a size with `times`, that is the layer of `times`."""
    out = {path: setter for path, setter in setters.items() if not path.endswith(".times")}
    for name, values in slots.items():
        if "times" in values:
            out |= {f"slots.{name}.{room}": setters[f"slots.{name}.times"] for room in _SIZE_KEYS if room in values}
    return out


def _slot(name: str, values: Mapping[str, Any]) -> Slot:
    settings = {key: value for key, value in values.items() if key not in ("optional", "times")}
    for key, figure in (("tokens", int), ("share", float)):
        if key in values and "times" in values:
            settings[key] = figure(values[key] * values["times"])
    settings["kinds"] = tuple(settings.get("kinds", ()))
    settings["extra_sources"] = tuple(dict(settings.get("extra_sources", {})).items())
    for key in ("share", "min_relevance", "priority"):
        if key in settings:
            settings[key] = float(settings[key])
    return Slot(name=name, **{"role": "system" if settings.get("stable") else "user"} | settings)


def _with_total(profile: Profile, total: int | None) -> Profile:
    """Return the profile with the budget of a call. `written_for` stays, because fixed sizes shrink in proportion to it."""
    if total is None or total == profile.total:
        return profile
    return replace(profile, total=total, layers={**profile.layers, "total": CALL_LAYER})
