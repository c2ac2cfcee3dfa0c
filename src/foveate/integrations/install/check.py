"""Check for `foveate doctor` that installed hooks work. Nothing is changed."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.errors import FoveateError
from foveate.integrations.hooks.service_file import find_service
from foveate.integrations.install.apply import install_record_path, load_install_record
from foveate.integrations.install.config_files import HOOKS_KEY, SERVERS_KEY, ConfigFile
from foveate.integrations.install.hosts import SETTINGS, InstallPaths, config_files
from foveate.pipeline import profiles
from foveate.project.project import ProjectLocation

if TYPE_CHECKING:
    from foveate.engine import Engine

InstalledFiles = list[tuple[ConfigFile, Any]]
"""Files that contain entries of foveate, each with those entries."""


def findings(engine: Engine, paths: InstallPaths, cwd: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return facts, problems and warnings about the hooks in the project's and in the global settings.

    With a problem, nothing reaches the agent.
    """
    problems: list[str] = []
    warnings: list[str] = []
    names = []
    for host in SETTINGS:
        for is_global in (False, True):
            if installed := _installed_files(host, paths, is_global):
                names.append(f"{host} ({'global' if is_global else 'project'})")
                problems += _missing_programs(installed)
                warnings += _modified_entries(installed, host, paths, is_global)
                warnings += _untrusted_by_codex(installed) if host == "codex" else []
    if not names:
        return {"hooks": "none; `foveate install claude` adds them to Claude Code, likewise codex, cursor, gemini"}, [], []
    warnings += [*_service_warning(paths), *_other_project_warning(paths, cwd), *_oversized_rules_warning(engine)]
    return {"hooks": ", ".join(names), "deliveries": _delivery_summary(engine)}, problems, warnings


def _installed_files(host: str, paths: InstallPaths, is_global: bool) -> InstalledFiles:
    installed = []
    for file in config_files(host, paths, is_global=is_global)[:-1]:  # the skill may belong to another host
        try:
            parts = file.installed_parts(file.path.read_text("utf-8")) if file.path.is_file() else None
        except (FoveateError, OSError, UnicodeDecodeError):
            continue  # the host itself reports a broken file
        if parts:
            installed.append((file, parts))
    return installed


def _missing_programs(installed: InstalledFiles) -> Iterator[str]:
    for file, parts in installed:
        for program in sorted(set(_programs(parts))):
            if os.path.isabs(program) and not os.access(program, os.X_OK):
                yield f"{file.path} calls {program}, which is missing. Run `foveate install` again, or `foveate uninstall`."


def _programs(parts: Any) -> Iterator[str]:
    """Yield the programs that entries call. With `args` a command is a path, else a line for a shell."""
    if isinstance(parts, dict):
        if isinstance(command := parts.get("command"), str):
            with suppress(ValueError):
                yield from [command] if "args" in parts else shlex.split(command)[:1]
        parts = list(parts.values())
    for part in parts if isinstance(parts, list) else ():
        yield from _programs(part)


def _modified_entries(installed: InstalledFiles, host: str, paths: InstallPaths, is_global: bool) -> Iterator[str]:
    """Warn about entries that differ from what is installed today, and about addresses of servers that do not answer.

    The server itself may differ: a program and the address of a running service both work.
    """
    record = load_install_record(install_record_path(paths, is_global=is_global))
    fix = f"`foveate install {host}{' --global' if is_global else ''}` corrects it."
    for file, parts in installed:
        if str(file.path) in record and _without_server(parts) != _without_server(file.expected_parts):
            yield f"The entries of foveate in {file.path} differ from those that this version installs. {fix}"
        for url in sorted(set(_server_urls(parts))):
            if not is_listening(url):
                yield f"{file.path} names the server {url}, where nothing listens. Start `foveate serve`, or: {fix}"


def _without_server(parts: Any) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if key != SERVERS_KEY} if isinstance(parts, dict) else {}


def _server_urls(parts: Any) -> Iterator[str]:
    """Return the addresses of a server entry in JSON, or in the lines of TOML."""
    server = parts.get(SERVERS_KEY) if isinstance(parts, dict) else None
    if isinstance(server, dict):
        yield from (str(server[name]) for name in ("url", "httpUrl") if name in server)
    for line in parts if isinstance(parts, list) else ():
        if line.startswith("url = "):
            yield str(json.loads(line.removeprefix("url = ")))


def _untrusted_by_codex(installed: InstalledFiles) -> list[str]:
    """Warn about hooks that Codex does not trust. It ignores them without a message.

    Codex records what it trusts in its settings, under the path of the file and the event.
    """
    path, parts = next(((file.path, parts) for file, parts in installed if file.path.name == "hooks.json"), (None, {}))
    config = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
    try:
        import tomllib

        states = tomllib.loads(config.read_text("utf-8")).get(HOOKS_KEY, {}).get("state", {})
        trusted = [key for key, state in states.items() if "trusted_hash" in str(state)]
    except (OSError, ValueError, AttributeError):
        trusted = []
    missing = [event for event in parts if not any(f"{path}:{_snake_case(event)}:" in key for key in trusted)]
    if not missing:
        return []
    subject = f"the hooks in {path}" if missing == list(parts) else f"{', '.join(missing)} in {path}"
    return [
        f"Codex does not trust {subject}, so they do nothing. Start `codex` in the project, trust the project if it asks, "
        "enter /hooks and trust those of foveate."
    ]


def _snake_case(event: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).lstrip("_")


def _service_warning(paths: InstallPaths) -> list[str]:
    path = ProjectLocation(paths.root).service_file
    try:
        url = str(json.loads(path.read_text("utf-8"))["url"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{path} cannot be read; `foveate serve` writes it again."]
    return [] if find_service(path) else [f"No service answers at {url}, so hooks take longer. Start it: `foveate serve`."]


def is_listening(url: str) -> bool:
    import socket

    from foveate.integrations.hooks.program import CONNECT_TIMEOUT_S, NoService, address_of

    try:
        name, _, port = address_of(url).rpartition(":")
        socket.create_connection((name.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except (NoService, OSError, OverflowError):
        return False
    return True


def _other_project_warning(paths: InstallPaths, cwd: Path) -> list[str]:
    from foveate.integrations.hooks.program import root_of

    root = root_of({"cwd": str(cwd.absolute())})
    if not root or os.path.realpath(root) == os.path.realpath(paths.root):
        return []
    return [f"Hooks that are called in {cwd.absolute()} use the store in {root}, and not the one in {paths.root}."]


def _oversized_rules_warning(engine: Engine) -> list[str]:
    """Warn if the rules alone, which every prompt receives, do not fit into a delivery."""
    from foveate.integrations.conversation import DEFAULT_QUERY
    from foveate.integrations.hooks.delivery import MAX_TOKENS, PROFILE

    try:
        profile = profiles.resolve(PROFILE, engine.store.profile_dirs)
        other_slots = [slot.name for slot in profile.slots if not slot.keep]
        engine.context(DEFAULT_QUERY, profile=PROFILE, without=other_slots, dry_run=True)
    except FoveateError as error:
        return [f"Hooks cannot deliver: {error}"]
    if profile.total <= MAX_TOKENS:
        return []
    return [f"Profile {PROFILE!r} asks for {profile.total:,} tokens; hooks deliver {MAX_TOKENS:,} at most."]


def _delivery_summary(engine: Engine) -> str:
    from foveate.integrations.hooks.delivery import delivery_stats

    stats = delivery_stats(engine)
    return f"{stats['items']:,} items on record for {stats['windows']:,} windows"
