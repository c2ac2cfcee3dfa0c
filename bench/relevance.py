"""Fit the coefficients of the relevance of a record, and judge them on data that they were not fitted on.

    python -m bench relevance                                  # the sets that are in FOVEATE_BENCH_DATA
    python -m bench relevance realtalk=PATH friendsqa=PATH --write

Conversations are stored as programs store them, by `engine.remember`. Requests are of three kinds: a conversation's own
questions, questions of the other sets, and prompts about something else (`unrelated.txt`). Their candidates have the
features that `foveate.pipeline.relevance` computes. The three steps of the model are fitted one after the other:

    strength    a softmax over the candidates of an own question, whose share of the evidence is maximized
    answerable  a logistic regression: own questions against the others
    evidence    a logistic regression over the candidates of own questions

Each set has the same weight, and so have both classes in `answerable`. Each set is judged by coefficients that were fitted
on the others. Coefficients that are not in FITTED keep their values, because only one of these sets has an assistant and
none has knowledge.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import log, log1p
from operator import itemgetter
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import foveate
from bench.corpus import DATA
from foveate.cli.call import say
from foveate.cli.eval import parse_pairs
from foveate.cli.eval_text import print_tables
from foveate.errors import InputError, NotFound, near
from foveate.eval.datasets import load_suite
from foveate.eval.model import Document
from foveate.eval.tables import Table
from foveate.pipeline import relevance
from foveate.pipeline.relevance import Model
from foveate.pipeline.run import Run
from foveate.types import Candidate, Message

Array = NDArray[np.float64]
Loss = Callable[[Array], tuple[float, Array, Array]]
"""Returns the loss, its gradient and its Hessian."""

SETS = {
    "locomo": ("locomo", "locomo"),
    "realtalk": ("realtalk", "realtalk"),
    "friendsqa": ("locomo", "friendsqa"),
    "longmemeval-turns": ("longmemeval-turns", "longmemeval"),
}
"""The suite of each set, and its folder in the data. FriendsQA must be in LoCoMo's format."""

COEFFICIENTS_FILE = Path(relevance.__file__).with_suffix(".toml")
UNRELATED_FILE = Path(__file__).with_name("unrelated.txt")

FITTED = {
    "strength": ("match", "neighbour", "overlap", "session", "speaker", "length"),
    "answerable": ("intercept", "strength", "coverage", "terms"),
    "evidence": ("intercept", "strength", "best_strength"),
}
"""The coefficients that are fitted, by step. The others in the file are set by hand."""

BUDGET = 10_000
"""So large that all candidates are within reach."""
SESSION = "a new session"
DEFAULT_SAMPLE = 400
SEED = 1
DIGITS = 2

RIDGE = 1e-7
"""Penalty on squared coefficients, for a set in which a feature never occurs."""
MAX_STEPS, TOLERANCE = 100, 1e-9

KINDS = ("own", "other", "unrelated")
THRESHOLDS = (0.2, 0.25, 0.3, 0.4)
BIN_EDGES = (0.0, 0.002, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)


# --- conversations, and what is asked --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    kind: str
    text: str
    now: str | None
    evidence: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Conversation:
    messages: Sequence[tuple[str, Message]]
    """Pairs of a session and a message."""
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the candidates that it has in a store."""

    kind: str
    features: Array
    """A row for each candidate and a column for each fitted coefficient of `strength`."""
    set_by_hand: Array
    """What the other coefficients of `strength` add for each candidate."""
    is_evidence: Array
    coverage: float
    """The largest coverage of a candidate."""
    terms: float
    """The logarithm of the number of terms."""


def load(name: str, path: Path) -> list[Conversation]:
    datasets = [subset.load() for subset in load_suite(SETS[name][0]).subsets(path, {})]
    return [
        Conversation(
            [(document.session or "", message_of(document)) for document in dataset.documents],
            [
                Question("own", case.query, case.now, frozenset(e.id for e in case.expected if e.evidence_type == "turn"))
                for case in dataset.cases
            ],
        )
        for dataset in datasets
    ]


def message_of(document: Document) -> Message:
    """Return a document as a message. Without a role its text begins with the speaker's name, as in `Ada: ...`."""
    name, _, text = ("", "", document.text) if document.role else document.text.partition(": ")
    values = {"name": name, "at": document.timestamp}
    given = {key: value for key, value in values.items() if value}
    return {"role": document.role or "user", "content": text, "id": document.id, **given}  # type: ignore[typeddict-item]


def questions_for(conversation: Conversation, others: Sequence[str], prompts: Sequence[str], size: int) -> list[Question]:
    """Return a sample of its own questions, and half as many of the others and of the prompts."""
    chance = random.Random(SEED)
    own = chance.sample(list(conversation.questions), min(size, len(conversation.questions)))
    now = max((question.now for question in own if question.now), default=None)
    foreign = [Question("other", text, now) for text in chance.sample(list(others), min(size // 2, len(others)))]
    unrelated = [Question("unrelated", chance.choice(prompts), now) for _ in range(size // 2)]
    return [*own, *foreign, *unrelated]


def ask(conversation: Conversation, questions: Sequence[Question]) -> Iterator[Asked]:
    """Store the conversation, and ask each question in a new session."""
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder, open_store(folder) as engine:
        for session, group in groupby(conversation.messages, key=itemgetter(0)):
            engine.remember([message for _, message in group], session=session)
        for question in questions:
            context = engine.context(question.text, budget=BUDGET, session=SESSION, now=question.now, dry_run=True)
            yield asked(context.run, question)


def open_store(folder: str) -> foveate.Engine:
    Path(folder, ".foveate").mkdir()  # without it, a project in a parent folder would be opened
    return foveate.open(folder, personal=False, code=False)


def asked(run: Run, question: Question) -> Asked:
    estimated = {each.record.id: each for each in run.candidates if relevance.is_estimated(each)}.values()
    keywords, to_assistant = frozenset(run.signals.keywords), relevance.asks_assistant(question.text)
    values = [relevance.match_features(each, keywords, asks_assistant=to_assistant) for each in estimated]
    by_hand = {name: weight for name, weight in relevance.model()["strength"].items() if name not in FITTED["strength"]}
    return Asked(
        question.kind,
        np.array([[each.get(name, 0.0) for name in FITTED["strength"]] for each in values]).reshape(
            len(values), len(FITTED["strength"])
        ),
        np.array([sum(weight * each.get(name, 0.0) for name, weight in by_hand.items()) for each in values]),
        np.array([_message_id(each) in question.evidence for each in estimated], float),
        max(map(relevance.coverage_of, estimated), default=0.0),
        log1p(len(run.signals.terms)),
    )


def _message_id(candidate: Candidate) -> str:
    return str(candidate.record.data.get("message_id", ""))


# --- the fit ---------------------------------------------------------------------------------------------------------


def fit(sets: Sequence[Sequence[Asked]], fixed: Model) -> dict[str, dict[str, float]]:
    """Return the coefficients that fit the sets best, and those of `fixed` that are not fitted."""
    found = [[each for each in one if len(each.features)] for one in sets]
    model = {step: dict(values) for step, values in fixed.items()}
    for step, solve in (("strength", _fit_strength), ("answerable", _fit_answerable), ("evidence", _fit_evidence)):
        model[step] |= dict(zip(FITTED[step], np.round(solve(found, model), DIGITS).tolist(), strict=True))
    return model


def _fit_strength(sets: Sequence[Sequence[Asked]], model: Model) -> Array:
    with_evidence = [[each for each in one if each.is_evidence.any()] for one in sets]
    return minimize(softmax_loss([one for one in with_evidence if one]), len(FITTED["strength"]))


def _fit_answerable(sets: Sequence[Sequence[Asked]], model: Model) -> Array:
    inputs, labels, weights = [], [], []
    for one in sets:
        own = np.array([each.kind == "own" for each in one], float)
        inputs += [answerable_inputs(each, model) for each in one]
        labels.append(own)
        weights.append(own / max(1.0, own.sum()) + (1 - own) / max(1.0, (1 - own).sum()))
    return minimize(logistic_loss(np.array(inputs), *map(np.concatenate, (labels, weights))), len(FITTED["answerable"]))


def _fit_evidence(sets: Sequence[Sequence[Asked]], model: Model) -> Array:
    own = [[each for each in one if each.kind == "own"] for one in sets]
    every = [each for one in own for each in one]
    weights = [np.full(sum(len(each.features) for each in one), 1.0) for one in own]
    return minimize(
        logistic_loss(
            np.concatenate([evidence_inputs(each, model) for each in every]),
            np.concatenate([each.is_evidence for each in every]),
            np.concatenate([each / max(1, len(each)) for each in weights]),
            np.concatenate([np.full(len(each.features), -pool_offset(each, model)) for each in every]),
        ),
        len(FITTED["evidence"]),
    )


def minimize(loss: Loss, size: int) -> Array:
    """Return the minimum of a convex function by Newton's method. A step that does not lower it is halved."""
    at = np.zeros(size)
    value, gradient, hessian = loss(at)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(hessian, gradient)
        if float(gradient @ step) < TOLERANCE:
            break
        while (lower := loss(at - step))[0] > value and np.abs(step).max() > TOLERANCE:
            step = step / 2
        at = at - step
        value, gradient, hessian = lower
    return at


def softmax_loss(sets: Sequence[Sequence[Asked]]) -> Loss:
    """Return the mean cross-entropy of the evidence of a question and a softmax over its candidates, by set."""
    every = [each for one in sets for each in one]
    rows = np.concatenate([each.features for each in every])
    fixed = np.concatenate([each.set_by_hand for each in every])
    sizes = np.array([len(each.features) for each in every])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    target = np.concatenate([each.is_evidence / each.is_evidence.sum() for each in every])
    weights = np.concatenate([np.full(len(one), 1 / (len(one) * len(sets))) for one in sets])
    by_row = np.repeat(weights, sizes)

    def loss(at: Array) -> tuple[float, Array, Array]:
        strengths = rows @ at + fixed
        highest = np.maximum.reduceat(strengths, starts)
        exps = np.exp(strengths - np.repeat(highest, sizes))
        sums = np.add.reduceat(exps, starts)
        shares = exps / np.repeat(sums, sizes)
        value = float(weights @ (highest + np.log(sums)) - (by_row * target) @ strengths)
        means = np.add.reduceat(rows * shares[:, None], starts)
        hessian = (rows * (by_row * shares)[:, None]).T @ rows - (means * weights[:, None]).T @ means
        return _with_ridge(at, value, rows.T @ (by_row * (shares - target)), hessian)

    return loss


def logistic_loss(rows: Array, labels: Array, weights: Array, offsets: Array | float = 0.0) -> Loss:
    """Return the weighted cross-entropy of labels and a logistic regression. The weights are scaled to a sum of 1."""
    weights = weights / weights.sum()

    def loss(at: Array) -> tuple[float, Array, Array]:
        sums = rows @ at + offsets
        estimates = sigmoid(sums)
        value = float(weights @ (np.logaddexp(0.0, sums) - labels * sums))
        gradient = rows.T @ (weights * (estimates - labels))
        hessian = (rows * (weights * estimates * (1 - estimates))[:, None]).T @ rows
        return _with_ridge(at, value, gradient, hessian)

    return loss


def _with_ridge(at: Array, value: float, gradient: Array, hessian: Array) -> tuple[float, Array, Array]:
    return value + RIDGE / 2 * float(at @ at), gradient + RIDGE * at, hessian + RIDGE * np.eye(len(at))


def sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(values, -50, 50)))


# --- the model -------------------------------------------------------------------------------------------------------


def strengths(each: Asked, model: Model) -> Array:
    return each.features @ _weights("strength", model) + each.set_by_hand


def answerable_inputs(each: Asked, model: Model) -> Array:
    return np.array([1.0, strengths(each, model).max(), each.coverage, each.terms])


def evidence_inputs(each: Asked, model: Model) -> Array:
    values = strengths(each, model)
    return np.column_stack([np.ones(len(values)), values, np.full(len(values), values.max())])


def pool_offset(each: Asked, model: Model) -> float:
    return log(max(relevance.MIN_POOL, len(each.features)) / model["evidence"]["pool"])


def answerable(each: Asked, model: Model) -> float:
    """Return the probability that the store answers a question: 0 if the question has no candidates."""
    if not len(each.features):
        return 0.0
    return float(sigmoid(answerable_inputs(each, model) @ _weights("answerable", model)))


def relevances(each: Asked, model: Model) -> Array:
    """Return the estimated probability of each candidate, as `relevance.estimate` does."""
    if not len(each.features):
        return np.zeros(0)
    sums = evidence_inputs(each, model) @ _weights("evidence", model) - pool_offset(each, model)
    return answerable(each, model) * sigmoid(sums)


def _weights(step: str, model: Model) -> Array:
    return np.array([model[step][name] for name in FITTED[step]])


# --- the report ------------------------------------------------------------------------------------------------------


def coefficients_table(models: Mapping[str, Model]) -> Table:
    """Return a table with a column for each model."""
    rows = [
        [f"{step}.{name}", *(f"{model[step][name]:.{DIGITS}f}" for model in models.values())]
        for step, names in FITTED.items()
        for name in names
    ]
    return Table("Coefficients, fitted without a set, on all, and as they are", ["", *models], rows)


def calibration_table(name: str, questions: Sequence[Asked], model: Model) -> Table:
    """Return estimated and observed shares of evidence among candidates. Own questions weigh as much as all others."""
    own = sum(each.kind == "own" for each in questions)
    weight_of_others = own / max(1, len(questions) - own)
    estimates = np.concatenate([relevances(each, model) for each in questions])
    observed = np.concatenate([each.is_evidence for each in questions])
    weights = np.concatenate(
        [np.full(len(each.features), 1.0 if each.kind == "own" else weight_of_others) for each in questions]
    )
    rows = []
    for low, high in pairwise(BIN_EDGES):
        chosen = (estimates >= low) & (estimates < high)
        if chosen.any():
            means = (np.average(values[chosen], weights=weights[chosen]) for values in (estimates, observed))
            rows.append([f"{low:g} to {high:g}", *(f"{mean:.2%}" for mean in means), f"{chosen.sum():,}"])
    return Table(f"{name}: relevance", ["", "estimated", "observed", "candidates"], rows)


def pass_table(title: str, sets: Mapping[str, Sequence[Asked]], models: Mapping[str, Model]) -> Table:
    """Return the shares of questions whose `answerable` is at least each threshold.

    The last column is the area under the ROC curve: the share of pairs in which the own question has the higher value.
    """
    rows = []
    for name, questions in sets.items():
        values = {kind: np.array([answerable(one, models[name]) for one in questions if one.kind == kind]) for kind in KINDS}
        for kind, found in values.items():
            shares = [f"{(found >= threshold).mean():.1%}" for threshold in THRESHOLDS]
            area = "" if kind == "own" else f"{(values['own'][:, None] > found).mean():.3f}"
            rows.append([name, kind, f"{len(found):,}", *shares, area])
    headers = ["", "questions", "", *(f">= {threshold:g}" for threshold in THRESHOLDS), "AUC"]
    return Table(title, headers, rows, left_aligned=2)


def tables(sets: Mapping[str, Sequence[Asked]], fitted: Model) -> Iterator[Table]:
    """Yield the tables of the report. `fitted` are the coefficients for all sets."""
    shipped = relevance.model()
    held_out = {name: fit([others for key, others in sets.items() if key != name], shipped) for name in sets}
    yield coefficients_table(
        {**{f"without {name}": model for name, model in held_out.items()}, "all": fitted, "now": shipped}
    )
    for name, questions in sets.items():
        yield calibration_table(f"{name}, held out", questions, held_out[name])
        yield calibration_table(f"{name}, coefficients as they are", questions, shipped)
    yield pass_table("Answerable, each set held out", sets, held_out)
    yield pass_table("Answerable, coefficients as they are", sets, dict.fromkeys(sets, shipped))


def with_coefficients(text: str, model: Model) -> str:
    """Return the text of the file with the fitted coefficients, and its comments as they are."""
    step, lines = "", []
    for line in text.splitlines(keepends=True):
        if header := re.match(r"\[(\w+)\]", line):
            step = header[1]
        name, equals, rest = line.partition(" = ")
        if equals and name in FITTED.get(step, ()):
            line = f"{name} = {model[step][name]}{rest[len(rest.split()[0]) :]}"
        lines.append(line)
    return "".join(lines)


# --- the command -----------------------------------------------------------------------------------------------------


def collect(paths: Mapping[str, Path], sample: int) -> dict[str, list[Asked]]:
    """Store the conversations of each set and ask the questions."""
    loaded = {name: load(name, path) for name, path in paths.items()}
    texts = {name: [q.text for each in conversations for q in each.questions] for name, conversations in loaded.items()}
    prompts = UNRELATED_FILE.read_text("utf-8").splitlines()
    sets: dict[str, list[Asked]] = {name: [] for name in loaded}
    for name, conversations in loaded.items():
        others = [text for other in texts if other != name for text in texts[other]]
        for n, conversation in enumerate(conversations, 1):
            say(f"{name}: conversation {n} of {len(conversations)}")
            sets[name] += ask(conversation, questions_for(conversation, others, prompts, sample // len(conversations)))
    return sets


def find_sets(given: Mapping[str, str]) -> dict[str, Path]:
    """Return the paths of the sets that are there. A set whose path was not given may be missing."""
    for name in given:
        if name not in SETS:
            raise NotFound(f"There is no set {name!r}.{near(name, SETS)}")
    paths = {name: Path(given.get(name, DATA / folder)) for name, (_, folder) in SETS.items()}
    for name, path in paths.items():
        if not path.exists():
            if name in given:
                raise NotFound(f"There is no file or folder {str(path)!r} with the set {name!r}.")
            print(f"{name} is skipped: name its data as {name}=PATH.", file=sys.stderr)
    found = {name: path for name, path in paths.items() if path.exists()}
    if len(found) < 2:
        raise InputError(f"At least 2 sets are needed, to judge one by the others; got {len(found)}.")
    return found


@click.command("relevance")
@click.argument("data", metavar="[SET=PATH...]", nargs=-1, callback=parse_pairs)
@click.option(
    "--sample",
    type=click.IntRange(20),
    default=DEFAULT_SAMPLE,
    show_default=True,
    metavar="N",
    help="Ask N own questions of each set, half as many of other sets, and half as many unrelated prompts.",
)
@click.option("--write", is_flag=True, help=f"Write the coefficients to {COEFFICIENTS_FILE.name}.")
def main(data: dict[str, str], sample: int, write: bool) -> None:
    """Fit the coefficients of the relevance of a record, and judge them on sets that they were not fitted on.

    The sets are locomo, realtalk, friendsqa (in LoCoMo's format) and longmemeval-turns, by default those in the folder
    FOVEATE_BENCH_DATA.
    """
    sets = collect(find_sets(data), sample)
    fitted = fit(list(sets.values()), relevance.model())
    print_tables(tables(sets, fitted))
    if write:
        COEFFICIENTS_FILE.write_text(with_coefficients(COEFFICIENTS_FILE.read_text("utf-8"), fitted), "utf-8")
        say(f"Wrote {COEFFICIENTS_FILE}.")
