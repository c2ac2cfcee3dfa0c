"""Embedders: texts to vectors. None is used unless a project or caller names one, for example `builtin`.

    builtin                              word vectors in this package: no download, no model to run
    model2vec:NAME_OR_PATH               static vectors, fast on a CPU
    sentence-transformers:NAME_OR_PATH   any of its models
    fastembed:NAME                       ONNX models
    openai:MODEL                         any endpoint of OpenAI's protocol: FOVEATE_EMBED_URL, FOVEATE_EMBED_KEY
    hash:DIM                             deterministic hashing of words and letters, for tests

All vectors of an embedder have one dimension and length one. A provider's package is imported when its name is given, never
at start. This module stores no vectors and searches nothing.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar
from zlib import crc32

from foveate.errors import FoveateError, InputError, SourceError, near
from foveate.text.format import one_line
from foveate.text.static_vectors import BuiltinEmbedder

BUILTIN = "builtin"
"""The embedder of this package, the only one whose name has no model."""

BATCH_SIZE = 64
"""Texts per call: enough to keep a model busy, few enough for any endpoint and for a failed call to lose little."""

MAX_CACHED_QUERIES = 512
"""An agent asks about the same task again and again."""

DEFAULT_URL = "http://127.0.0.1:11434/v1"
"""The address of a local Ollama."""

TIMEOUT_S = 10.0
"""A cold model on a CPU needs a few seconds."""

MAX_ATTEMPTS = 4
"""Three retries and no more, because a caller waits for a context."""

PROBE_TEXT = "foveate"
"""Embedded once to learn a model's dimension, for which every package has another name."""

MODEL_FILES = frozenset({".json", ".safetensors", ".bin", ".onnx"})

Vector = Sequence[float]
T = TypeVar("T")


class Embedder(Protocol):
    """Turns texts into vectors. Vectors with different fingerprints are never compared."""

    @property
    def fingerprint(self) -> str:
        """Provider, model, dimension and, if known, revision: `hash:256:1`."""

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """Return one vector for each text, in order."""

    def query(self, text: str, /) -> Vector:
        """Return the vector of a question. It is the same as a text's, unless the model marks questions as such."""


def open_embedder(spec: str) -> Embedder:
    """Return the embedder that `PROVIDER:MODEL` names. An endpoint is not called before the first vector is needed."""
    if spec == BUILTIN:
        return BuiltinEmbedder()
    provider, _, model = spec.partition(":")
    if provider == BUILTIN:
        raise InputError(f"The embedder {BUILTIN!r} has no models to choose from, got {spec!r}. Write `{BUILTIN}`.")
    if provider not in _PROVIDERS:
        raise InputError(f"Unknown embedding provider {provider!r}.{near(provider, (BUILTIN, *_PROVIDERS))}")
    if not model:
        raise InputError(f"The embedder {spec!r} names no model. Write `{provider}:MODEL`.")
    return CachedEmbedder(_PROVIDERS[provider](model))


def embed_or_none(embedder: Embedder, texts: Sequence[str]) -> tuple[list[Vector] | None, str]:
    """Return the vectors, or None and the reason on one line."""
    return _try_embed(lambda: list(embedder.embed(texts)))


def query_or_none(embedder: Embedder, text: str) -> tuple[Vector | None, str]:
    """Return the query's vector, or None and the reason on one line."""
    return _try_embed(lambda: embedder.query(text))


def _try_embed(embed: Callable[[], T]) -> tuple[T | None, str]:
    try:
        return embed(), ""
    except Exception as error:  # a model may fail in any way, and the engine goes on without vectors
        reason = one_line(error)
        return None, reason if isinstance(error, FoveateError) else f"{type(error).__name__}: {reason}"


class CachedEmbedder:
    """Any embedder, with batches, checked vectors of length one, and a cache of the latest queries."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._cached_query = lru_cache(maxsize=MAX_CACHED_QUERIES)(self._embed_query)

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def dim(self) -> int:
        return self._embedder.dim

    def embed(self, texts: Sequence[str], /) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = texts[start : start + BATCH_SIZE]
            vectors += self._validate(self._embedder.embed(batch), len(batch))
        return vectors

    def query(self, text: str, /) -> Vector:
        return self._cached_query(text)

    def _embed_query(self, text: str) -> Vector:
        return self._validate([self._embedder.query(text)], 1)[0]

    def _validate(self, vectors: Sequence[Vector], expected: int) -> list[Vector]:
        if len(vectors) != expected:
            raise SourceError(f"{self.fingerprint!r} returned {len(vectors)} vectors for {expected} texts.")
        for vector in vectors:
            if len(vector) != self.dim:
                raise SourceError(f"{self.fingerprint!r} returned a vector of dimension {len(vector)}, not {self.dim}.")
        return [_normalize(vector) for vector in vectors]


def _normalize(vector: Vector) -> Vector:
    """Return the vector at length one. A vector of zeros, from a text without words, stays as it is."""
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise SourceError("The embedder returned a vector whose numbers are not finite.")
    return tuple(x / length for x in vector) if length else tuple(vector)


# --- models in this process ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LocalModel:
    fingerprint: str
    dim: int
    embed: Callable[[Sequence[str]], Sequence[Vector]]
    query: Callable[[str], Vector]


def _model2vec(name: str) -> Embedder:
    package = _import("model2vec", "model2vec")
    with _loading_errors(name):
        model = package.StaticModel.from_pretrained(name, force_download=False)

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return _to_lists(model.encode(list(texts)))

    return _local_model("model2vec", name, embed, lambda text: embed([text])[0])


def _sentence_transformers(name: str) -> Embedder:
    package = _import("sentence_transformers", "sentence-transformers")
    with _loading_errors(name):
        model = package.SentenceTransformer(name)

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return _to_lists(model.encode_document(list(texts), show_progress_bar=False))

    def query(text: str) -> Vector:
        return _to_lists(model.encode_query([text], show_progress_bar=False))[0]

    return _local_model("sentence-transformers", name, embed, query)


def _fastembed(name: str) -> Embedder:
    package = _import("fastembed", "fastembed")
    with _loading_errors(name):
        model = package.TextEmbedding(name)

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return _to_lists(model.passage_embed(list(texts)))

    return _local_model("fastembed", name, embed, lambda text: _to_lists(model.query_embed(text))[0])


def _import(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"The embedder {extra!r} needs a package: pip install 'foveate[{extra}]' ({error})") from None


@contextmanager
def _loading_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"The embedding model {name!r} cannot be loaded: {one_line(error)}") from error


def _to_lists(rows: Iterable[Any]) -> list[Vector]:
    """Return the rows of a NumPy array as plain lists."""
    return [row.tolist() for row in rows]


def _local_model(
    provider: str, name: str, embed: Callable[[Sequence[str]], Sequence[Vector]], query: Callable[[str], Vector]
) -> Embedder:
    dim = len(embed([PROBE_TEXT])[0])
    folder = Path(name)
    model = f"{folder.resolve().name}:{dim}:{_digest_files(folder)}" if folder.is_dir() else f"{name}:{dim}"
    return _LocalModel(f"{provider}:{model}", dim, embed, query)


def _digest_files(folder: Path) -> str:
    """Return a digest of a model's files: a model that was trained again in the same folder is another model."""
    digest = blake2b(digest_size=8)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in MODEL_FILES):
        with path.open("rb") as file:
            digest.update(path.name.encode() + file_digest(file, blake2b).digest())
    return digest.hexdigest()


# --- hashing ---------------------------------------------------------------------------------------------------------

HASH_VERSION = 1
"""Raise it when the features change: vectors from before and after must not be compared."""

NGRAM_LETTERS, NGRAM_WEIGHT = 3, 0.5
"""Runs of letters bring `caching` near `cached`; at half the weight of a word, words still decide."""

_WORD = re.compile(r"\w+|[^\w\s]+")


def _hash(dim: str) -> Embedder:
    if not (dim.isascii() and dim.isdigit() and int(dim) > 0):
        raise InputError(f"The dimension in 'hash:{dim}' must be a whole number above zero, as in `hash:256`.")

    def query(text: str) -> Vector:
        return _hash_vector(text, int(dim))

    return _LocalModel(f"hash:{int(dim)}:{HASH_VERSION}", int(dim), lambda texts: [query(text) for text in texts], query)


def _hash_vector(text: str, dim: int) -> Vector:
    vector = [0.0] * dim
    for feature, weight in _features(text):
        code = crc32(feature.encode("utf-8", "surrogatepass"))
        vector[code % dim] += weight if code >> 31 else -weight
    return vector


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in _WORD.findall(text.casefold()):
        yield word, 1.0
        padded = f"<{word}>"
        for start in range(len(padded) - NGRAM_LETTERS + 1):
            yield padded[start : start + NGRAM_LETTERS], NGRAM_WEIGHT


# --- an endpoint -----------------------------------------------------------------------------------------------------


class HttpEmbedder:
    """A model behind OpenAI's protocol. Its dimension is known after its first response."""

    def __init__(self, model: str, url: str, key: str = "", *, sleep: Callable[[float], None] = time.sleep) -> None:
        from foveate.text.remote import JsonEndpoint, check_endpoint  # urllib would add a third to the start of a process

        check_endpoint(url, key, "FOVEATE_EMBED_URL", "FOVEATE_EMBED_KEY")
        self._model = model
        self._endpoint = JsonEndpoint(
            name="The embedding endpoint",
            url=url.rstrip("/") + "/embeddings",
            model=model,
            key=key,
            key_name="FOVEATE_EMBED_KEY",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout_s=TIMEOUT_S,
            max_attempts=MAX_ATTEMPTS,
            sleep=sleep,
        )
        self._dim: int | None = None

    @property
    def dim(self) -> int:
        return len(self.query(PROBE_TEXT)) if self._dim is None else self._dim

    @property
    def fingerprint(self) -> str:
        return f"openai:{self._model}:{self.dim}"

    def embed(self, texts: Sequence[str], /) -> Sequence[Vector]:
        body = {"model": self._model, "input": list(texts)}
        response = self._endpoint.post(body, hint=" Is it running, and is FOVEATE_EMBED_URL right?")
        vectors = self._parse_response(response)
        if self._dim is None:
            self._dim = len(vectors[0])
        return vectors

    def query(self, text: str, /) -> Vector:
        return self.embed([text])[0]

    def _parse_response(self, response: Any) -> Sequence[Vector]:
        try:
            rows = sorted(response["data"], key=lambda row: row.get("index", 0))
            vectors = [[float(x) for x in row["embedding"]] for row in rows]
        except (AttributeError, KeyError, TypeError, ValueError):
            vectors = []
        if not vectors or not all(vectors):
            raise SourceError(f"The embedding endpoint {self._endpoint.url!r} answered without vectors.")
        return vectors


def _openai(model: str) -> Embedder:
    url = os.environ.get("FOVEATE_EMBED_URL", "").strip() or DEFAULT_URL
    return HttpEmbedder(model, url, os.environ.get("FOVEATE_EMBED_KEY", "").strip())


_PROVIDERS: Mapping[str, Callable[[str], Embedder]] = {
    "model2vec": _model2vec,
    "sentence-transformers": _sentence_transformers,
    "fastembed": _fastembed,
    "openai": _openai,
    "hash": _hash,
}
