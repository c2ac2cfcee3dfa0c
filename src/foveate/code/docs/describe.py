"""Describes a repository to someone new to it, in sections of three lengths, from its own documents, manifests and paths.

Every statement is taken from a file or from the paths; nothing is executed, fetched or guessed by a model. The same paths
and texts give the same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foveate.code.docs import prose
from foveate.code.docs.commands import PURPOSES, Command, find_commands
from foveate.code.docs.manifests import (
    Manifest,
    ProjectConfig,
    RepositoryFiles,
    count_languages,
    ecosystem_of,
    frameworks,
    is_peripheral,
    project_config,
    read_manifests,
)
from foveate.code.languages import display_name, programming_language
from foveate.text.format import truncate
from foveate.text.markdown import close_fence

MAX_CHARS, MAX_SUMMARY_CHARS, MAX_MICRO_CHARS = 2_600, 330, 76
"""About 700, 100 and 20 tokens: names and paths take a token for less than four characters."""

MAX_PACKAGES = 24


@dataclass(frozen=True, slots=True)
class DocSection:
    """One topic at three lengths, with the files that the text comes from."""

    name: str
    title: str
    text: str
    summary: str
    micro: str
    source_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodebaseDocs:
    """The docs of a repository. They depend only on its paths and on the texts of `input_paths`."""

    project: ProjectConfig
    sections: tuple[DocSection, ...]
    input_paths: tuple[str, ...]
    notes: tuple[str, ...]
    """Files that could not be read, with the reasons."""


def describe(paths: Sequence[str], read: Callable[[str], str | None]) -> CodebaseDocs:
    """Return the project's configuration and its docs. `read` returns a text, or None for what cannot be read."""
    files = RepositoryFiles(paths, read)
    manifests = read_manifests(files)
    project = project_config(files, manifests)
    sections = (
        _instructions(files),
        _architecture(files, manifests),
        _stack(files, manifests),
        _commands(find_commands(files, manifests, ecosystem_of(project.language))),
        _directories(files),
    )
    return CodebaseDocs(project, tuple(filter(None, sections)), files.read_paths, tuple(dict.fromkeys(files.notes)))


def from_json(value: Mapping[str, Any]) -> CodebaseDocs:
    """Return docs that `dataclasses.asdict` and JSON have stored."""
    sections = tuple(
        DocSection(**{**section, "source_paths": tuple(section["source_paths"])}) for section in value["sections"]
    )
    return CodebaseDocs(ProjectConfig(**value["project"]), sections, tuple(value["input_paths"]), tuple(value["notes"]))


# --- three lengths -------------------------------------------------------------------------------------------------


def _section(name: str, title: str, lines: Sequence[str], short: Sequence[str], sources: Iterable[str]) -> DocSection | None:
    """Return a section of lines, the most important first. `short` are the sentences of its shorter lengths."""
    if not lines:
        return None
    text = _lines_that_fit(lines, MAX_CHARS)
    short = [sentence for sentence in short if sentence] or [line.strip().removeprefix("- ") for line in lines]
    summary = _sentences_that_fit(short, MAX_SUMMARY_CHARS)
    summary = summary if len(summary) < len(text) else text
    return DocSection(name, title, text, summary, _micro(short), tuple(dict.fromkeys(filter(None, sources))))


def _lines_that_fit(lines: Sequence[str], max_bytes: int) -> str:
    kept: list[str] = []
    for number, line in enumerate(lines):
        shown = line if kept else truncate(line, max_bytes)
        max_bytes -= _bytes(shown) + 1
        if max_bytes < 0:
            return "\n".join([*kept, f"… {len(lines) - number} more"])
        kept.append(shown)
    return "\n".join(kept)


def _sentences_that_fit(sentences: Sequence[str], max_bytes: int) -> str:
    """Return the sentences in order, without those that do not fit. The first one is cut."""
    kept = [_with_period(truncate(sentences[0], max_bytes))]
    for sentence in sentences[1:]:
        if _bytes(" ".join(kept)) + _bytes(sentence) + 2 <= max_bytes:
            kept.append(_with_period(sentence))
    return " ".join(kept)


def _micro(sentences: Sequence[str]) -> str:
    """Return one line: as many of the first sentences as fit, at least the beginning of the first."""
    line = truncate(" ".join(sentences[0].split()), MAX_MICRO_CHARS)
    for sentence in sentences[1:]:
        if len(line) + len(sentence) + 2 <= MAX_MICRO_CHARS:
            line = f"{line.rstrip('.')}; {sentence}"
    return line


def _with_period(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", ":", "…", "。")) else f"{sentence}."


def _bytes(text: str) -> int:
    """Return the length in bytes: a character that is not ASCII takes more tokens."""
    return len(text.encode("utf-8", "replace"))


def _join(names: Sequence[str], limit: int) -> str:
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


# --- instructions --------------------------------------------------------------------------------------------------

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md", ".cursorrules", ".github/copilot-instructions.md", "GEMINI.md")
_MAX_POINTER_CHARS = 200
_TITLE = re.compile(r"\A# .*\n+")
"""The name of the page at its top: the section has a title of its own."""


def _instructions(files: RepositoryFiles) -> DocSection | None:
    """Return what agents are told, word for word, as much as fits."""
    texts = _instruction_texts(files)
    nested = [path for path in files.paths if path.endswith(("/AGENTS.md", "/CLAUDE.md")) and path.count("/") < 4][:12]
    where = [f"`{path.rpartition('/')[0]}` has its own instructions ({path})" for path in nested]
    if not texts and not where:
        return None
    room = MAX_CHARS - sum(_bytes(line) + 1 for line in where)
    parts = [
        _beginning(f"From {path}:\n{text}" if len(texts) > 1 else text, room // len(texts), path)
        for path, text in texts.items()
    ]
    text = "\n".join([*parts, *([""] if parts and where else []), *where])
    rules = [rule for body in texts.values() for rule in prose.obligations(body)]
    first = [
        sentence for body in texts.values() for part in prose.paragraphs(body)[:3] for sentence in prose.sentences(part.text)
    ]
    short = rules or first or where or [text]
    summary = text if len(text) <= MAX_SUMMARY_CHARS else _sentences_that_fit(short, MAX_SUMMARY_CHARS)
    return DocSection("instructions", "Instructions for agents", text, summary, _micro(short), (*texts, *nested))


def _instruction_texts(files: RepositoryFiles) -> dict[str, str]:
    """Return the instructions at the root, without those that repeat or only point to another."""
    texts: dict[str, str] = {}
    for path in INSTRUCTION_FILES:
        text = _TITLE.sub("", files.text(path).strip())
        is_pointer = len(text) < _MAX_POINTER_CHARS and any(other in text for other in INSTRUCTION_FILES if other != path)
        if text and not (is_pointer and texts) and text not in texts.values():
            texts[path] = text
    return texts


def _beginning(text: str, max_bytes: int, path: str) -> str:
    """Return the text, or its first lines with no heading last and no code block left open."""
    if _bytes(text) <= max_bytes:
        return text
    kept: list[str] = []
    max_bytes -= 80  # the fence that may have to be closed, and the mark
    for line in text.splitlines():
        max_bytes -= _bytes(line) + 1
        if max_bytes < 0:
            break
        kept.append(line)
    while kept and (not kept[-1].strip() or kept[-1].lstrip().startswith("#")):
        kept.pop()
    kept = kept or [truncate(text, 200)]
    return "\n".join([*close_fence(kept), f"… ({path} goes on)"])


# --- architecture and stack ----------------------------------------------------------------------------------------

_READMES = ("README.md", "README.rst", "README.txt", "README", "Readme.md", "readme.md", "docs/README.md")
_ARCHITECTURE_PAGES = ("ARCHITECTURE.md", "docs/architecture.md", "docs/ARCHITECTURE.md", "DESIGN.md")


def _architecture(files: RepositoryFiles, manifests: Sequence[Manifest]) -> DocSection | None:
    """Return what the README and a page on the architecture say first, and the members of a workspace."""
    described = next((manifest for manifest in manifests if manifest.description and not manifest.folder), None)
    readme, page = files.first_existing(*_READMES), files.first_existing(*_ARCHITECTURE_PAGES)
    said = prose.introduction(files.text(readme)) if readme else []
    drawn = prose.introduction(files.text(page)) if page else []
    members = {manifest.folder: manifest for manifest in reversed(manifests) if manifest.folder and manifest.name}
    structure = [f"`{folder}` is {_member(members[folder])}." for folder in sorted(members)[:8]]
    lines = [described.description] if described and not said else []
    lines += said
    lines += [f"From {page}:", *drawn] if drawn else []
    lines += structure
    first = [sentence for line in lines[:2] for sentence in prose.sentences(line.removeprefix("- "))]
    sources = (described.path if described and not said else "", readme or "", page or "")
    return _section("architecture", "Architecture", lines, list(dict.fromkeys([*first[:2], *structure[:1]])), sources)


def _member(manifest: Manifest) -> str:
    kinds = ", ".join([manifest.ecosystem, *frameworks(manifest)[:2]])
    return f"{manifest.name} ({kinds})" + (f": {manifest.description.rstrip('.')}" if manifest.description else "")


def _stack(files: RepositoryFiles, manifests: Sequence[Manifest]) -> DocSection | None:
    """Return the languages of the code and what the manifests at the root depend on."""
    counts = count_languages(files.paths)
    total = counts.total()
    shares = [f"{display_name(name)} {_share(count, total)}" for name, count in counts.most_common(4)]
    lines = [f"Languages: {', '.join(shares)}"] if shares else []
    sources = []
    for manifest in manifests:
        dependencies = [_join(manifest.dependencies, MAX_PACKAGES)] if manifest.dependencies else []
        if not manifest.folder and (dependencies or manifest.language_version):
            lines.append(f"{'; '.join([*filter(None, [manifest.language_version]), *dependencies])} ({manifest.path})")
            sources.append(manifest.path)
    return _section("stack", "Stack", lines, lines[:1], sources)


def _share(count: int, total: int) -> str:
    return f"{max(1, round(100 * count / total))} %"


def _commands(commands: Sequence[Command]) -> DocSection | None:
    lines = [f"- {PURPOSES[command.purpose]}: `{command.line}` ({command.source})" for command in commands]
    first = {command.purpose: command for command in reversed(commands)}
    short = [f"{PURPOSES[purpose]}: `{first[purpose].line}`" for purpose in PURPOSES if purpose in first]
    return _section("commands", "Commands", lines, short, [command.source for command in commands])


# --- directories ---------------------------------------------------------------------------------------------------


def approximate_count(count: int) -> str:
    """Return a count, above a hundred of two digits, so that a file more does not change the docs."""
    if count < 100:
        return str(count)
    unit = 10 ** (len(str(count)) - 2)
    return f"about {round(count / unit) * unit:,}"


def _directories(files: RepositoryFiles) -> DocSection | None:
    """Return the top directories with the number of their files, those with the most code first. The map shows the rest."""
    languages: dict[str, Counter[str]] = {}
    for path in files.paths:
        top, slash, _ = path.partition("/")
        if slash and top[0] != ".":
            languages.setdefault(top, Counter())[programming_language(path)] += 1
    tops = sorted(languages, key=lambda top: (is_peripheral(f"{top}/"), -_code_files(languages[top]), top))
    lines = [f"- `{top}` ({_size(languages[top])})" for top in tops]
    return _section("directories", "Directories", lines, [], [])


def _code_files(languages: Mapping[str, int]) -> int:
    return sum(count for language, count in languages.items() if language)


def _size(languages: Counter[str]) -> str:
    """Return `24 Python files`; all files if little of it is code."""
    count, language = languages.total(), ""
    if _code_files(languages) * 10 > count:
        language, count = max(((name, n) for name, n in languages.items() if name), key=lambda item: (item[1], item[0]))
    return f"{approximate_count(count)} {display_name(language) + ' ' if language else ''}file{'' if count == 1 else 's'}"
