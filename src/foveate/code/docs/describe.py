"""A repository -> what someone new to it has to know, in sections of three lengths.

Comes in: the paths of the repository and a way to read them. Goes out: `Codebase`: the project's configuration and sections
on instructions, architecture, stack, entry points, commands, conventions and directories. Every statement is taken from a
file or from the paths; nothing is executed, guessed by a model or fetched. Same paths and texts, same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from foveate.code.docs import layout, prose
from foveate.code.docs.commands import Command, commands, entry_points
from foveate.code.docs.conventions import asked, contributing, conventions
from foveate.code.docs.manifests import Manifest, manifests
from foveate.code.docs.repository import Repository, is_beside
from foveate.code.docs.stack import ECOSYSTEMS, ProjectConfig, configure, frameworks, package_manager, services

FULL_CHARS, SUMMARY_CHARS, MICRO_CHARS = 2_600, 330, 76
"""About 700, 100 and 20 tokens: names and paths take a token for less than four characters."""

MAX_DIRECTORIES = 40
MAX_LIBRARIES = 24


@dataclass(frozen=True, slots=True)
class DocSection:
    """One matter at three lengths. `source_paths` are the files that the text comes from."""

    name: str
    title: str
    text: str
    summary: str
    micro: str
    source_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Codebase:
    """What a repository says about itself. It depends on its paths and on the texts of `inputs`, on nothing else."""

    project: ProjectConfig
    sections: tuple[DocSection, ...]
    inputs: tuple[str, ...]
    notes: tuple[str, ...]
    """What could not be read, and why."""


def describe(paths: Sequence[str], read: Callable[[str], str | None], name: str = "") -> Codebase:
    """The project's configuration and its documents. `read` gives a text, or None for what cannot be read."""
    repository = Repository(paths, read)
    found = manifests(repository)
    project = configure(repository, found, name)
    folders = layout.directories(repository.paths)
    told = instructions(repository)
    guides = [*told, *filter(None, [contributing(repository)])]
    listed = commands(repository, found, project, guides)
    sections = (
        _instructions(repository, told),
        _architecture(repository, found, project, folders),
        _stack(repository, found, project),
        _entry_points(repository, found),
        _commands(listed, project),
        _conventions(repository, found, project),
        _directories(repository, folders),
    )
    notes = tuple(dict.fromkeys(repository.notes))
    return Codebase(project, tuple(section for section in sections if section), repository.inputs, notes)


def from_json(value: Mapping[str, Any]) -> Codebase:
    """A codebase as `dataclasses.asdict` and JSON have left it."""
    sections = tuple(DocSection(**{**one, "source_paths": tuple(one["source_paths"])}) for one in value["sections"])
    return Codebase(ProjectConfig(**value["project"]), sections, tuple(value["inputs"]), tuple(value["notes"]))


# --- three lengths -------------------------------------------------------------------------------------------------


def _section(name: str, title: str, lines: Sequence[str], short: Sequence[str], sources: Iterable[str]) -> DocSection | None:
    """A section of lines, most important first where they may not fit; `short` are the sentences of its shorter lengths."""
    if not lines:
        return None
    text = _lines_that_fit(lines, FULL_CHARS)
    short = [sentence for sentence in short if sentence] or [line.strip().removeprefix("- ") for line in lines]
    summary = _sentences_that_fit(short, SUMMARY_CHARS)
    summary = summary if len(summary) < len(text) else text
    return DocSection(name, title, text, summary, _micro(short), tuple(dict.fromkeys(path for path in sources if path)))


def _lines_that_fit(lines: Sequence[str], room: int) -> str:
    kept: list[str] = []
    for place, line in enumerate(lines):
        line = line if line.strip() == "" else prose.clipped(line, room) if not kept else line
        room -= _width(line) + 1
        if room < 0:
            left = sum(1 for line in lines[place:] if line.strip())
            return "\n".join([*kept, f"… {left} more"]).strip()
        kept.append(line)
    return "\n".join(kept).strip()


def _sentences_that_fit(sentences: Sequence[str], room: int) -> str:
    """The sentences in order, without those that do not fit; the first one is clipped."""
    kept = [_ended(prose.clipped(sentences[0], room))]
    room -= _width(kept[0])
    for sentence in sentences[1:]:
        if (width := _width(sentence) + 2) <= room:
            kept.append(_ended(sentence))
            room -= width
    return " ".join(kept)


def _micro(sentences: Sequence[str]) -> str:
    """One line: as many of the first sentences as fit, at least the beginning of the first."""
    line = prose.clipped(" ".join(sentences[0].split()), MICRO_CHARS)
    for sentence in sentences[1:]:
        if len(line) + len(sentence) + 2 <= MICRO_CHARS:
            line = f"{line.rstrip('.')}; {sentence}"
    return line


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", ":", "…", "。")) else f"{sentence}."


def _width(text: str) -> int:
    """Length in bytes: what is not ASCII takes more tokens for a character."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _named(paths: Sequence[str], most: int = 3) -> str:
    return ", ".join(paths[:most]) + (" and others" if len(paths) > most else "")


def _list(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


# --- instructions --------------------------------------------------------------------------------------------------

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", ".cursorrules", ".github/copilot-instructions.md", "GEMINI.md")
_POINTER_CHARS = 200
_TITLE = re.compile(r"\A# .*\n+")
"""The name of the page at its top: the section has one already."""
BEGINNING_SHARE = 0.6
"""How much of the room the beginning of long instructions has; the rest is for the rules that come later."""


def instructions(repository: Repository) -> list[str]:
    """The files at the root that tell agents what to do, without those that repeat or only point to another."""
    kept: list[str] = []
    for path in INSTRUCTIONS:
        text = repository.text(path).strip()
        points = len(text) < _POINTER_CHARS and any(other in text for other in INSTRUCTIONS if other != path)
        if text and not (points and kept) and all(text != repository.text(other).strip() for other in kept):
            kept.append(path)
    return kept


def _instructions(repository: Repository, told: Sequence[str]) -> DocSection | None:
    nested = [path for name in ("AGENTS.md", "CLAUDE.md") for path in repository.named(name) if "/" in path]
    nested += [path for path in repository.paths if path.endswith("/AGENTS.md") and is_beside(path) and path.count("/") < 4]
    where = [f"`{path.rpartition('/')[0]}` has its own instructions ({path})" for path in dict.fromkeys(nested)][:12]
    if not told and not where:
        return None
    room = FULL_CHARS - sum(_width(line) + 1 for line in where)
    parts: list[str] = []
    rules: list[tuple[int, str]] = []
    for path in told:
        text = repository.text(path).strip()
        parts += [f"From {path}:"] if len(told) > 1 else []
        parts += [_as_written(_TITLE.sub("", text), room // len(told), path)]
        rules += prose.rules(text)
    ranked = [rule for _, rule in sorted(rules, key=lambda rule: -rule[0])]
    opening = [
        sentence
        for path in told
        for block in prose.blocks(repository.text(path))[:3]
        for sentence in prose.sentences(block.text)
    ]
    text = "\n".join([*parts, *(["", *where] if parts and where else where)])
    short = ranked or opening or where or [text]
    summary = _sentences_that_fit(short, SUMMARY_CHARS) if len(text) > SUMMARY_CHARS else text
    return DocSection(
        "instructions", "Instructions for agents", text, summary, _micro(short), (*told, *dict.fromkeys(nested))
    )


def _as_written(text: str, room: int, path: str) -> str:
    """The text word for word; of a longer one its beginning, and the rules from further on, one a line."""
    if _width(text) <= room:
        return text
    kept = _whole_lines(text, int(room * BEGINNING_SHARE))
    lines = [kept, f"… ({path} goes on, and says:)"]
    room -= _width(kept) + _width(lines[1]) + 2
    for _, rule in sorted(prose.rules(text), key=lambda rule: -rule[0]):
        if rule not in prose.plain(kept) and (room := room - _width(rule) - 3) >= 0:
            lines.append(f"- {rule}")
    return "\n".join(lines) if len(lines) > 2 else f"{_whole_lines(text, room + len(kept))}\n… ({path} goes on)"


def _whole_lines(text: str, room: int) -> str:
    """The lines that fit, with no heading last and no fence left open."""
    kept: list[str] = []
    for line in text.splitlines():
        room -= _width(line) + 1
        if room < 0:
            break
        kept.append(line)
    kept = kept or [prose.clipped(text, max(room, 200))]
    while kept and (not kept[-1].strip() or kept[-1].lstrip().startswith("#")):
        kept.pop()
    if sum(line.lstrip().startswith("```") for line in kept) % 2:
        kept.append("```")
    return "\n".join(kept)


# --- architecture --------------------------------------------------------------------------------------------------

_READMES = ("README.md", "README.rst", "README.txt", "README", "README.adoc", "docs/README.md")


def _architecture(
    repository: Repository, found: Sequence[Manifest], project: ProjectConfig, folders: dict[str, layout.Directory]
) -> DocSection | None:
    described = next((one for one in found if one.description and not one.folder), None)
    readme = repository.root(*_READMES[:-1]) or repository.first(_READMES[-1])
    said = prose.opening(repository.text(readme), 900) if readme else []
    page = repository.root("ARCHITECTURE.md", "ARCHITECTURE.rst", "DESIGN.md") or next(
        iter(_architecture_pages(repository)), None
    )
    drawn = prose.opening(repository.text(page), 800, whole=True) if page else []
    structure = _structure(repository, found, folders)
    lines = [described.description] if described and not (said and _same(described.description, said[0])) else []
    lines += said
    lines += ["", f"From {page}:", *drawn] if page and drawn else []
    lines += ["", *structure] if lines and structure else structure
    first = [sentence for line in said[:2] for sentence in prose.sentences(line.removeprefix("- "))]
    short = [*(lines[:1] if lines and lines[0] not in said else []), *first[:1], *structure[:1], *first[1:3]]
    sources = [described.path if described else "", readme or "", page or ""]
    return _section("architecture", "Architecture", lines, list(dict.fromkeys(short)), sources)


def _same(one: str, other: str) -> bool:
    """Whether most words of a sentence stand in another text."""
    words = {word for word in one.lower().split() if len(word) > 3}
    return bool(words) and len(words & set(other.lower().split())) >= 0.6 * len(words)


def _architecture_pages(repository: Repository) -> list[str]:
    """Pages on the architecture right under the documents, the shortest path first."""
    pages = [
        path for path in repository.paths if path.startswith(("docs/", "doc/")) and path.endswith((".md", ".rst", ".txt"))
    ]
    telling = [path for path in pages if path.rpartition("/")[2].lower().startswith(("architecture", "design-overview"))]
    return sorted(telling, key=lambda path: (path.count("/"), path))


def _structure(repository: Repository, found: Sequence[Manifest], folders: dict[str, layout.Directory]) -> list[str]:
    """The packages that hold the code, with what is inside, and the parts of a workspace."""
    lines = []
    for directory in _packages(folders):
        inner = [
            (name, folders[f"{directory.path}/{name}"]) for name in directory.folders if not name.startswith((".", "__"))
        ]
        names = [name for name, one in inner if one.languages and not layout.is_test(f"{one.path}/")]
        inside = f": {_list(names, 14)}" if names else ""
        lines.append(f"`{directory.path}` holds {directory.size}{inside}.")
    tests = [path for path in repository.paths if layout.test_pattern(path)]
    if tests:
        places = sorted({path.split("/")[0] for path in tests if layout.is_test(path.split("/")[0] + "/")})
        where = f" in {', '.join(f'`{place}`' for place in places[:3])}" if places else ""
        lines.append(f"Tests: {layout.files(len(tests))}{where}.")
    parts = {one.folder: one for one in reversed(found) if one.folder and one.name}
    lines += [f"`{one.folder}` is {_part(one)}." for one in list(reversed(parts.values()))[:8]]
    return lines


def _part(manifest: Manifest) -> str:
    kind = ", ".join([manifest.ecosystem, *frameworks(manifest)[:2]])
    return f"{manifest.name} ({kind})" + (f": {manifest.description.rstrip('.')}" if manifest.description else "")


SMALL_SHARE = 0.04
"""A directory with a smaller part of the largest one's files is not among the packages that hold the code."""


def _packages(folders: dict[str, layout.Directory]) -> list[layout.Directory]:
    """The directories where the code is: through `src` and other chains of one, without tests, documents and examples."""
    own = [one for path, one in folders.items() if "/" not in path and one.languages and not path.startswith(".")]
    own = [one for one in own if not layout.is_test(f"{one.path}/") and not is_beside(f"{one.path}/")]
    opened = [_descended(folders, one) for one in own]
    ranked = sorted(opened, key=lambda one: (-one.languages.total(), one.path))
    floor = ranked[0].languages.total() * SMALL_SHARE if ranked else 0
    return [one for one in ranked if one.languages.total() >= floor][:6]


def _descended(folders: dict[str, layout.Directory], directory: layout.Directory) -> layout.Directory:
    """Down through directories whose code is all in one directory."""
    while True:
        inside = [folders[f"{directory.path}/{name}"] for name in directory.folders]
        heavy = [
            one
            for one in inside
            if one.languages and not layout.is_test(f"{one.path}/") and not one.path.endswith("/resources")
        ]
        if len(heavy) != 1 or any(layout.language_of(name) for name in directory.own):
            return directory
        directory = heavy[0]


# --- stack ---------------------------------------------------------------------------------------------------------


def _stack(repository: Repository, found: Sequence[Manifest], project: ProjectConfig) -> DocSection | None:
    shares = _shares(repository)
    lines = [f"- Languages: {shares}"] if shares else []
    required = {one.requires: one.path for one in reversed(found) if one.requires}
    versions = [f"{version} ({path})" for version, path in reversed(required.items())]
    lines += [f"- Requires: {', '.join(versions[:6])}"] if versions else []
    own = ECOSYSTEMS.get(project.language, "")
    lines += [f"- Framework: {project.framework} ({project.framework_from})"] if project.framework else []
    ecosystems = list(
        dict.fromkeys([*(one.ecosystem for one in found if one.ecosystem == own), *(one.ecosystem for one in found)])
    )
    for ecosystem in ecosystems:
        lines += _libraries(repository, [one for one in found if one.ecosystem == ecosystem], ecosystem)
    images, compose = services(repository)
    lines += [f"- Services: {_list(images, 12)} ({compose})"] if images else []
    parts = list(dict.fromkeys(pattern for one in found for pattern in one.workspaces))
    lines += [f"- Workspace of {_list(parts, 10)}"] if parts else []
    used = next((one.dependencies for one in found if one.ecosystem == own and one.dependencies), ())
    manager, _ = package_manager(repository, found, own)
    short = [
        f"Written in {shares}" if shares else "",
        f"Requires {versions[0]}" if versions else "",
        f"Framework: {project.framework}" if project.framework else "",
        f"Depends on {_list(_merged(used), 8)}" if used else "",
        f"Built or managed with {manager}" if manager else "",
        f"Services: {_list(images, 6)}" if images else "",
    ]
    return _section("stack", "Stack", lines, short, [*(one.path for one in found), compose])


def _shares(repository: Repository) -> str:
    counts = layout.languages(repository.paths)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shares = [(language, round(100 * count / counts.total())) for language, count in ranked]
    telling = [f"{layout.shown(language)} {share} %" for language, share in shares if share >= 1]
    return ", ".join(telling[:8]) if len(telling) > 1 else layout.shown(ranked[0][0]) if ranked else ""


def _libraries(repository: Repository, own: Sequence[Manifest], ecosystem: str) -> list[str]:
    """What the manifests of one ecosystem depend on, and what manages it."""
    used = list(dict.fromkeys(name for one in own for name in one.dependencies))
    helping = list(dict.fromkeys(name for one in own for name in one.development if name not in used))
    paths = _named([one.path for one in own])
    manager, evidence = package_manager(repository, own, ecosystem)
    lines = [f"- {ecosystem.capitalize()} libraries: {_list(_merged(used), MAX_LIBRARIES)} ({paths})"] if used else []
    lines += [f"- {ecosystem.capitalize()} development tools: {_list(_merged(helping), MAX_LIBRARIES)}"] if helping else []
    built = list(dict.fromkeys(one.build for one in own if one.build and one.build != manager))
    also = f"; also {', '.join(built)}" if built else ""
    return (
        [*lines, f"- {ecosystem.capitalize()} packages are managed or built with {manager} ({evidence}){also}"]
        if manager
        else lines
    )


MERGED_FROM = 4


def _merged(names: Sequence[str]) -> list[str]:
    """Names of one family as one: `tree-sitter-* (22)`, `@angular/* (9)`."""
    families = Counter(_family(name) for name in names)
    merged = (f"{family}* ({families[family]})" if family and families[family] >= MERGED_FROM else name
              for name in names for family in [_family(name)])  # fmt: skip
    return list(dict.fromkeys(merged))


def _family(name: str) -> str:
    cut = max(name.rfind(mark) for mark in "/:") if name.startswith("@") or ":" in name else name.rfind("-")
    return name[: cut + 1]


# --- entry points, commands ----------------------------------------------------------------------------------------


def _entry_points(repository: Repository, found: Sequence[Manifest]) -> DocSection | None:
    lines, sources = entry_points(repository, found)
    return _section("entry_points", "Entry points", [f"- {line}" for line in lines], [], sources)


_PURPOSES = {"test": "Test", "lint": "Lint", "types": "Check types", "format": "Format", "build": "Build", "run": "Run",
             "docs": "Build the docs", "setup": "Set up"}  # fmt: skip
_OTHERS_SHOWN = 3


def _commands(listed: Sequence[Command], project: ProjectConfig) -> DocSection | None:
    own = ("", ECOSYSTEMS.get(project.language, ""))
    tested = f"- Test framework: {project.test_framework} ({project.test_framework_from})" if project.test_framework else ""
    lines, short = [], []
    for purpose, group in groupby(listed, key=lambda command: command.purpose):
        first, *others = group
        label = _PURPOSES[purpose] if first.ecosystem in own else f"{_PURPOSES[purpose]} ({first.ecosystem})"
        lines.append(f"- {label}: `{first.line}` ({_named(first.sources)})")
        lines += [f"  - also `{one.line}` ({_named(one.sources, 2)})" for one in others[:_OTHERS_SHOWN]]
        lines += [tested] if purpose == "test" and tested else []
        short += [f"{label}: `{first.line}`"] if first.ecosystem in own else []
    lines += [tested] if tested and tested not in lines else []
    sources = [path for command in listed for path in command.sources]
    return _section("commands", "Commands", lines, short, [*sources, project.test_framework_from])


# --- conventions, directories --------------------------------------------------------------------------------------


def _conventions(repository: Repository, found: Sequence[Manifest], project: ProjectConfig) -> DocSection | None:
    settings = conventions(repository, found, project.language)
    rules, guide = asked(repository)
    lines = [f"- {line}{f' ({path})' if path else ''}" for line, path in settings]
    lines += ["", f"{guide} asks:", *(f"- {rule}" for rule in rules)] if rules else []
    if not lines:
        return None
    short = ["; ".join(prose.clipped(part, 50) for part in line.split("; ")[:2]) for line, _ in settings]
    short += [rule for rule in rules if prose.force(rule) == 2]
    return _section("conventions", "Conventions", lines, short, [*(path for _, path in settings), guide])


def _directories(repository: Repository, folders: dict[str, layout.Directory]) -> DocSection | None:
    rows: list[tuple[int, str]] = []
    short: list[str] = []
    sources: list[str] = []
    shown: list[str] = []
    for directory in layout.told(folders, MAX_DIRECTORIES):
        role, source = layout.role(repository, directory)
        depth = sum(directory.path.startswith(f"{path}/") for path in shown)
        shown.append(directory.path)
        rows.append((depth, f"{'  ' * depth}- `{directory.path}` ({directory.size}){': ' + role if role else ''}"))
        short += [f"`{directory.path}`: {prose.clipped(role, 60)}"] if depth == 0 and role else []
        sources.append(source)
    return _section("directories", "Directories", _outermost_that_fit(rows), short, sources)


def _outermost_that_fit(rows: list[tuple[int, str]]) -> list[str]:
    """The lines in order, without the deepest where there is not room for all."""
    kept = list(rows)
    room = FULL_CHARS - sum(_width(line) + 1 for _, line in rows)
    while room < 0 and len(kept) > 1:
        last = max(range(len(kept)), key=lambda place: (kept[place][0], place))
        room += _width(kept.pop(last)[1]) + 1
    return [line for _, line in kept]
