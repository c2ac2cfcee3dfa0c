"""Are the hooks that were installed alive? What `doctor` says about them, each with what to do.

Comes in: where things are. Goes out: facts, problems (nothing reaches the agent) and warnings. Nothing is changed.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.errors import FoveateError
from foveate.integrations.hooks.service_file import find
from foveate.integrations.install.apply import record_of, remembered
from foveate.integrations.install.hosts import HOSTS, SERVER, File, Scope, Where, files
from foveate.pipeline import profiles
from foveate.project.project import Place

if TYPE_CHECKING:
    from foveate.engine import Engine

SCOPES: tuple[Scope, ...] = ("project", "user")


def findings(engine: Engine, where: Where, here: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    """Facts, problems and warnings on the hooks of this project and of this person."""
    problems: list[str] = []
    warnings: list[str] = []
    installed = []
    for host in HOSTS:
        for scope in SCOPES:
            found = _installed(host, scope, where)
            if found:
                installed.append(f"{host} ({scope})")
                problems += _dead(found)
                warnings += _edited(found, host, scope, where)
                warnings += _untrusted(found) if host == "codex" else []
    if not installed:
        return {"hooks": "none; `foveate install claude` adds them to Claude Code, likewise codex, cursor, gemini"}, [], []
    warnings += [*_service(where), *_elsewhere(where, here), *_too_large(engine)]
    return {"hooks": ", ".join(installed), "deliveries": _ledger(engine)}, problems, warnings


def _installed(host: str, scope: Scope, where: Where) -> list[tuple[File, Any]]:
    """The files of a host that hold something of ours, each with what."""
    found = []
    for file in files(host, scope, where)[:-1]:  # the skill may be shared by hosts, and does no harm alone
        try:
            held = file.has(file.path.read_text("utf-8")) if file.path.is_file() else None
        except (FoveateError, OSError, UnicodeDecodeError):
            continue  # a broken file of the host's is the host's to complain of
        if held:
            found.append((file, held))
    return found


def _dead(found: list[tuple[File, Any]]) -> Iterator[str]:
    """Programs that are called and not there, each once."""
    for file, held in found:
        for program in sorted({name for call in _calls(held) if (name := _program(call))}):
            if os.path.isabs(program) and not os.access(program, os.X_OK):
                yield f"{file.path} calls {program}, which is gone. `foveate install` again, or `foveate uninstall`."


def _calls(held: Any) -> Iterator[dict[str, Any]]:
    """The commands in what is ours, however deep."""
    if isinstance(held, dict):
        if isinstance(held.get("command"), str):
            yield held
        held = list(held.values())
    for part in held if isinstance(held, list) else ():
        yield from _calls(part)


def _program(call: dict[str, Any]) -> str:
    if "args" in call:
        return str(call["command"])
    try:
        return next(iter(shlex.split(call["command"])), "")
    except ValueError:
        return ""


def _edited(found: list[tuple[File, Any]], host: str, scope: Scope, where: Where) -> Iterator[str]:
    """Entries that are not as installed. Over which way the server is reached, both are right, as long as it answers."""
    record = remembered(record_of(scope, where))
    how = f"`foveate install {host}{'' if scope == 'project' else ' --scope user'}` makes it as it should be."
    for file, held in found:
        if str(file.path) in record and _hooks_in(held) != _hooks_in(file.wants):
            yield f"What {file.path} has of foveate is not what this foveate would install. {how}"
        for url in sorted(set(_urls(held))):
            if not answers(url):
                yield f"{file.path} has the server at {url}, where nobody answers. Start `foveate serve`, or: {how}"


def _hooks_in(held: Any) -> dict[str, Any]:
    return {event: entries for event, entries in held.items() if event != SERVER} if isinstance(held, dict) else {}


def _urls(held: Any) -> Iterator[str]:
    """Where a server is said to be, in JSON or in lines of TOML."""
    server = held.get(SERVER) if isinstance(held, dict) else None
    if isinstance(server, dict):
        yield from (str(server[name]) for name in ("url", "httpUrl") if name in server)
    for line in held if isinstance(held, list) else ():
        if line.startswith("url = "):
            yield str(json.loads(line.removeprefix("url = ")))


def _untrusted(found: list[tuple[File, Any]]) -> list[str]:
    """Codex keeps what it trusts in its settings, under file and event; it says nothing about the rest."""
    hooks, held = next(((file.path, held) for file, held in found if file.path.name == "hooks.json"), (None, {}))
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
    try:
        import tomllib

        states = tomllib.loads(home.read_text("utf-8")).get("hooks", {}).get("state", {})
        trusted = [key for key, state in states.items() if "trusted_hash" in str(state)]
    except (OSError, ValueError, AttributeError):
        trusted = []
    missing = [event for event in held if not any(f"{hooks}:{_snake(event)}:" in key for key in trusted)]
    if not missing:
        return []
    which = f"the hooks in {hooks}" if missing == list(held) else f"{', '.join(missing)} in {hooks}"
    return [
        f"Codex does not trust {which}, so that they do nothing. Start `codex` in the project, trust the project if it "
        "asks, enter /hooks and trust those of foveate."
    ]


def _snake(event: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).lstrip("_")


def _service(where: Where) -> list[str]:
    path = Place(where.root).service
    try:
        url = str(json.loads(path.read_text("utf-8"))["url"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{path} cannot be read; `foveate serve` writes it anew."]
    return [] if find(path) else [f"No service answers at {url}, so that hooks take longer. Start it: `foveate serve`."]


def answers(url: str) -> bool:
    """Whether somebody listens there."""
    import socket

    from foveate.integrations.hooks.program import CONNECT, NoService, address_of

    try:
        name, _, port = address_of(url).rpartition(":")
        socket.create_connection((name.strip("[]"), int(port)), CONNECT).close()
    except (NoService, OSError, OverflowError):
        return False
    return True


def _elsewhere(where: Where, here: Path) -> list[str]:
    from foveate.integrations.hooks.program import root_of

    found = root_of({"cwd": str(here.absolute())})
    if not found or os.path.realpath(found) == os.path.realpath(where.root):
        return []
    return [f"Hooks that are called in {here.absolute()} use the store in {found}, and not the one in {where.root}."]


def _too_large(engine: Engine) -> list[str]:
    from foveate.integrations.conversation import NOTHING_ASKED
    from foveate.integrations.hooks.delivery import MAX_TOKENS, PROFILE

    try:
        profile = profiles.resolve(PROFILE, engine.store.profile_dirs)
        others = [slot.name for slot in profile.slots if not slot.keep]
        engine.context(NOTHING_ASKED, profile=PROFILE, without=others, dry_run=True)
    except FoveateError as error:
        return [f"Hooks cannot deliver: {error}"]
    if profile.total <= MAX_TOKENS:
        return []
    return [f"Profile {PROFILE!r} asks for {profile.total:,} tokens; hooks deliver {MAX_TOKENS:,} at most."]


def _ledger(engine: Engine) -> str:
    from foveate.integrations.hooks.delivery import ledger

    held = ledger(engine)
    return f"{held['items']:,} items on record for {held['windows']:,} windows"
