"""Reads the training text: pairs that were written for it, WordNet, a dialogue corpus, and functions with their docstrings.

Every source installs from PyPI or Debian by name; README.md lists their licences.
"""

from __future__ import annotations

import ast
import json
import random
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

HERE = Path(__file__).parent
WORDNET = Path("/usr/share/wordnet")
HELD_OUT = 10
"""One in so many pairs is kept for evaluation."""

MAX_FILES, MAX_FUNCTIONS = 700, 4000
"""Files and functions of a package that are read, so that no package dominates."""

_PERMISSIVE = re.compile(r"license[^\n]*(mit|bsd|apache|psf|isc|unlicense|hpnd|python software|zpl|zope)")
_COPYLEFT = re.compile(r"license[^\n]*(agpl|lgpl|gpl)|gnu (lesser |affero )?general public")
_MARKUP = re.compile(r"[>|=`*_]{2}|:param|:return")


@dataclass(frozen=True, slots=True)
class Item:
    """A passage, requests that it answers in other words, and a passage that looks alike and does not."""

    passage: str
    requests: Sequence[str]
    lookalike: str

    @property
    def is_held_out(self) -> bool:
        return int(md5(self.passage.encode()).hexdigest(), 16) % HELD_OUT == 0


@dataclass(frozen=True, slots=True)
class Function:
    summary: str
    """The first sentence of its docstring."""
    body: str
    details: Sequence[str]
    """The other sentences."""


@dataclass(frozen=True, slots=True)
class Synset:
    words: Sequence[str]
    gloss: str
    examples: Sequence[str]


def items() -> list[Item]:
    found = []
    for path in sorted((HERE / "pairs").glob("*.txt")):
        for block in path.read_text("utf-8").split("\n\n"):
            lines: dict[str, list[str]] = {"P": [], "Q": [], "N": []}
            for line in block.splitlines():
                if line[:2] in ("P ", "Q ", "N "):
                    lines[line[0]].append(line[2:])
            if lines["P"] and lines["Q"] and lines["N"]:
                found.append(Item(lines["P"][0], lines["Q"], lines["N"][0]))
    return found


def download(packages: Sequence[str], folder: Path) -> None:
    """Download the wheels of packages. One that has none for this Python is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in packages:
        if not list(folder.glob(f"{re.sub('[-.]', '_', name.partition('==')[0])}-*.whl")):
            options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "-d", str(folder)]
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", *options, name], check=False, capture_output=True)


def functions(folder: Path) -> list[Function]:
    """Return the documented functions of the wheels in a folder, each summary once."""
    found: dict[str, Function] = {}
    for wheel in sorted(folder.glob("*.whl")):
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(wheel) as archive:
            if _is_permissive(archive):
                for function in _functions_of(archive):
                    found.setdefault(function.summary.lower(), function)
    return list(found.values())


def _is_permissive(archive: zipfile.ZipFile) -> bool:
    metadata = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    text = archive.read(metadata[0]).decode("utf-8", "replace").lower()[:6000] if metadata else ""
    return bool(_PERMISSIVE.search(text)) and not _COPYLEFT.search(text)


def _functions_of(archive: zipfile.ZipFile) -> Iterator[Function]:
    names = [name for name in archive.namelist() if name.endswith(".py") and not re.search(r"/tests?[/_]|vendor", name)]
    random.Random(1).shuffle(names)
    count = 0
    for name in names[:MAX_FILES]:
        try:
            tree = ast.parse(archive.read(name))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            function = _function(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
            if function:
                yield function
                count += 1
        if count >= MAX_FUNCTIONS:
            return


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function | None:
    docstring = ast.get_docstring(node) or ""
    summary = re.split(r"(?<=[.!?])\s", re.split(r"\n\s*\n", docstring)[0].replace("\n", " ").strip())[0]
    arguments = ", ".join(each.arg for each in node.args.args if each.arg not in ("self", "cls"))
    body = "\n".join(ast.unparse(each) for each in node.body[1:])[:700]
    if not 4 <= len(summary.split()) <= 25 or not summary.isascii() or len(body) < 25:
        return None
    sentences = [" ".join(each.split()) for each in re.split(r"(?<=[.!?])\s+|\n\s*\n", docstring[len(summary) :])]
    details = [each for each in sentences if 6 <= len(each.split()) <= 28 and each.isascii() and not _MARKUP.search(each)]
    return Function(summary, f"{node.name}({arguments}) {body}", details)


def synsets() -> tuple[list[Synset], Counter[str]]:
    """Return the synsets of WordNet, and how often each word occurs in its tagged text."""
    found = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (WORDNET / f"data.{part}").read_text("latin1").splitlines():
            if line.startswith("  "):
                continue
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            words = [fields[4 + 2 * n].replace("_", " ").split("(")[0] for n in range(int(fields[3], 16))]
            definition, *examples = gloss.strip().split('; "')
            found.append(Synset(words, definition, [example.strip(' ";') for example in examples]))
    counts: Counter[str] = Counter()
    for line in (WORDNET / "cntlist.rev").read_text("latin1").splitlines():
        sense, _, count = line.split()
        counts[sense.split("%")[0]] += int(count)
    return found, counts


def messages(folder: Path) -> list[str]:
    """Return the messages of the package `chitchat-dataset`, 4 to 40 words each."""
    (wheel,) = folder.glob("chitchat_dataset-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        dialogues = json.loads(archive.read("chitchat_dataset/dataset.json"))
    turns = (" ".join(each["text"] for each in turn) for dialogue in dialogues.values() for turn in dialogue["messages"])
    return [turn for turn in turns if 4 <= len(turn.split()) <= 40 and turn.isascii()]
