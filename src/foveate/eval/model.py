"""The values of an evaluation: documents, cases, evidence, and what a suite and a system must provide.

A suite yields subsets, each with a store of its own. A subset is loaded when its turn comes, as a dataset: the documents
of a memory or the folder of a repository, and the cases to run on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from foveate.text.sanitize import strip_invisible

if TYPE_CHECKING:
    from foveate.pipeline.sources import Source

EVIDENCE_METRICS = ("hit_rate", "complete", "recall")
"""For each type of evidence: some of it arrived, all of it arrived, and the fraction that arrived."""
CASE_METRICS = ("no_forbidden", "passed")
"""For a whole case: nothing forbidden is there; all that is expected is there, too."""
METRICS = (*EVIDENCE_METRICS, *CASE_METRICS)
BINARY_METRICS = ("hit_rate", "complete", *CASE_METRICS)
"""Metrics that are 0 or 1 in each case."""

BUDGETS = (250, 500, 1000, 2000, 4000, 8000, 16000, 32000)
"""The default token budgets of a suite."""

RUNS_DIR = "eval-runs"
"""The default folder of run files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One thing to store. `timestamp` is ISO 8601, and `values` are further arguments of `engine.add`."""

    id: str
    text: str
    kind: str = "note"
    session: str | None = None
    timestamp: str | None = None
    user: str | None = None
    agent: str | None = None
    role: str | None = None
    """The role of a message. foveate stores documents with a role by `engine.remember`."""
    values: Mapping[str, Any] = field(default_factory=dict)
    is_retired: bool = False
    links: tuple[tuple[str, str], ...] = ()
    """Pairs of a link's name and the id of another document."""


@dataclass(frozen=True)
class RenderedPrompt:
    """The text that a system would send to a model, and its parts by slot if the system has slots."""

    text: str
    slots: Mapping[str, str] | None = None

    @cached_property
    def normalized_text(self) -> str:
        return normalize_text(self.text)

    def slot_text(self, slot: str | None) -> str:
        """Return the normalized text of a slot, or of the whole prompt for a system without slots."""
        if slot is None or self.slots is None:
            return self.normalized_text
        return normalize_text(self.slots.get(slot, ""))


# foveate escapes headings and rules inside quoted texts, so that they cannot pass for headings of the prompt.
_ESCAPE = re.compile(r"\\(?=#{1,6}(?:\s|$)|={2}|-{3})")


def normalize_text(text: str) -> str:
    """Return the words of a text with single spaces, without invisible characters and without escapes before headings."""
    return " ".join(_ESCAPE.sub("", strip_invisible(text)).split())


class Evidence(Protocol):
    """A piece of evidence that an answer needs."""

    @property
    def evidence_type(self) -> str:
        """The group that the piece is counted in, such as turn, session or file."""
        ...

    @property
    def id(self) -> str:
        """Its id in a ranking of such pieces."""
        ...

    def is_present_in(self, prompt: RenderedPrompt) -> bool: ...


@dataclass(frozen=True, slots=True)
class Case:
    """A query with the evidence that must, and must not, be in the prompt."""

    id: str
    query: str
    expected: tuple[Evidence, ...]
    forbidden: tuple[Evidence, ...] = ()
    question_type: str = ""
    now: str | None = None
    user: str | None = None
    agents: tuple[str | None, ...] = (None,)
    """The agents that ask. Each of several gets the whole budget, and their prompts are joined."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of foveate's context, such as a profile or overrides. Baselines ignore them."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A loaded subset: documents to store or a repository to search, and the cases."""

    cases: Sequence[Case]
    documents: Sequence[Document] = ()
    root: Path | None = None
    store: Path | None = None
    """An existing store of foveate, which is used as it is. `documents` lists its records for the baselines."""
    answer_files: Sequence[str] = ()
    """The files of the repository that can be answers. Others are left out of rankings."""
    skipped_cases: int = 0
    """Questions without evidence in the data, which are not run."""


@dataclass(frozen=True, slots=True)
class Subset:
    """The part of a suite that shares one store. Its results are written together, so a stopped run goes on after it."""

    id: str
    load: Callable[[], Dataset]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A data set. `subsets(path, options)` reads it from the user's file or folder."""

    name: str
    description: str
    subsets: Callable[[Path, Mapping[str, str]], Iterator[Subset]]
    files: Callable[[Path], Sequence[Path]]
    """The files that it reads. Results are reused only while their content is the same."""
    data_format: str = "data of this suite"
    """The expected format, for error messages."""
    profile: str | None = None
    """The profile of foveate for such data; None for its default."""
    budgets: tuple[int, ...] = BUDGETS
    options: Mapping[str, str] = field(default_factory=dict)
    """The names that `-o NAME=VALUE` accepts, each with a line of explanation."""
    path_options: tuple[str, ...] = ()
    """Options that only say where something lies. Results do not depend on them."""
    rank_cutoffs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The ranks to report, by type of evidence."""
    is_code: bool = False
    """Whether its datasets are repositories. A baseline works either on memories or on code."""
    sources: tuple[Source, ...] = ()
    """Sources that foveate needs for this suite in addition to its own."""


class OpenSystem(Protocol):
    """A system that has stored a dataset."""

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        """Return the prompt for a case within a token budget."""
        ...

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        """Return the ids of evidence by type, best first; an empty mapping if the system has no ranking."""
        ...

    def close(self) -> None: ...


class System(Protocol):
    """A system to evaluate."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """A text that changes with the system's behavior. Results are reused only while it is the same."""
        ...

    @property
    def is_code(self) -> bool | None:
        """True if it works on repositories, False on memories, None on both."""
        ...

    def open(self, dataset: Dataset, suite: Suite) -> OpenSystem: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemType:
    """A factory of systems: makes one from the argument after the colon of its name."""

    make: Callable[[str], System]
    description: str
    argument: str = ""
    """The form of the argument, for error messages. Empty if the system takes none."""
    needs_argument: bool = False
    missing: Callable[[], str] = lambda: ""
    """Returns how to install what is missing here, or an empty string."""
