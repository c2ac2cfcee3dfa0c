"""Embedder: texts to vectors, where somebody wants that. There is none by default.

Comes in: a spec such as `model2vec:minishlab/potion-base-8M`. Goes out: an embedder whose vectors are of one dimension
and of length one, and whose fingerprint says what made them. A provider's package is imported when its name is given,
never at start.

    model2vec:NAME_OR_PATH               static vectors, fast on a CPU
    sentence-transformers:NAME_OR_PATH   any of its models
    fastembed:NAME                       ONNX models
    openai:MODEL                         any endpoint of OpenAI's protocol: FOVEATE_EMBED_URL, FOVEATE_EMBED_KEY
    hash:DIM                             deterministic hashing of words and letters, for tests

It keeps no vectors of records, searches nothing, and does not choose a model.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener
from zlib import crc32

from foveate.errors import FoveateError, InputError, SourceError, near

BATCH = 64
"""Texts a call: enough to keep a model busy, few enough for any endpoint, and for a failed call to lose little."""
QUERIES = 512
"""Query vectors that are remembered: an agent asks about the same task again and again."""

TIMEOUT = 10.0
"""Seconds for one answer of an endpoint: a cold model on a CPU needs a few."""
ATTEMPTS = 4
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 4.0
"""Seconds, doubled from the first unless the endpoint says; three of them, as somebody is waiting for a context."""
RETRIED = frozenset({429, 500, 502, 503, 504})
DETAIL_CHARS = 200
"""Of an endpoint's own words, as much as reads well in one line of a receipt."""

DEFAULT_URL = "http://127.0.0.1:11434/v1"
"""Where a local Ollama listens."""
PROBE = "foveate"
"""Embedded once to learn a model's dimension, which every package names differently."""
MODEL_FILES = frozenset({".json", ".safetensors", ".bin", ".onnx"})

Vector = Sequence[float]
T = TypeVar("T")


class Embedder(Protocol):
    """What turns texts into vectors. Vectors of different fingerprints are never compared."""

    @property
    def fingerprint(self) -> str:
        """Provider, model, dimension and, where known, revision: `hash:256:1`."""

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str], /) -> Sequence[Vector]:
        """One vector for each text, in order."""

    def query(self, text: str, /) -> Vector:
        """The vector of a question; the same as a text's, unless the model wants questions marked as such."""


def open_embedder(spec: str) -> Embedder:
    """The embedder that `provider:model` names. An endpoint is not asked before the first vector is."""
    provider, _, model = spec.partition(":")
    if provider not in _PROVIDERS:
        raise InputError(f"There is no embedding provider {provider!r}.{near(provider, _PROVIDERS)}")
    if not model:
        raise InputError(f"The embedder {spec!r} names no model. Write `{provider}:MODEL`.")
    return Cached(_PROVIDERS[provider](model))


class Cached:
    """Any embedder, in batches, its vectors checked and brought to length one, its latest queries remembered."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._remembered = lru_cache(maxsize=QUERIES)(self._asked)

    @property
    def fingerprint(self) -> str:
        return self._inner.fingerprint

    @property
    def dim(self) -> int:
        return self._inner.dim

    def embed(self, texts: Sequence[str], /) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors += self._checked(self._inner.embed(batch), len(batch))
        return vectors

    def query(self, text: str, /) -> Vector:
        return self._remembered(text)

    def _asked(self, text: str) -> Vector:
        return self._checked([self._inner.query(text)], 1)[0]

    def _checked(self, vectors: Sequence[Vector], expected: int) -> list[Vector]:
        if len(vectors) != expected:
            raise SourceError(f"{self.fingerprint!r} gave {len(vectors)} vectors for {expected} texts.")
        for vector in vectors:
            if len(vector) != self.dim:
                raise SourceError(f"{self.fingerprint!r} gave a vector of dimension {len(vector)}, not {self.dim}.")
        return [_unit(vector) for vector in vectors]


def embed_or_none(embedder: Embedder, texts: Sequence[str]) -> tuple[list[Vector] | None, str]:
    """The vectors and no reason, or None and the reason, in one line, why there are none."""
    return _or_none(lambda: list(embedder.embed(texts)))


def query_or_none(embedder: Embedder, text: str) -> tuple[Vector | None, str]:
    """The query's vector and no reason, or None and the reason, in one line, why there is none."""
    return _or_none(lambda: embedder.query(text))


def _or_none(ask: Callable[[], T]) -> tuple[T | None, str]:
    try:
        return ask(), ""
    except Exception as error:  # a model may fail in any way; the engine goes on without vectors and says so
        said = " ".join(str(error).split())
        return None, said if isinstance(error, FoveateError) else f"{type(error).__name__}: {said}"


def _unit(vector: Vector) -> Vector:
    """The vector at length one; one of zeros, as of a text without words, stays as it is."""
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise SourceError("The embedder gave a vector that holds no finite numbers.")
    return tuple(x / length for x in vector) if length else tuple(vector)


# --- models in this process ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Model:
    fingerprint: str
    dim: int
    embed: Callable[[Sequence[str]], Sequence[Vector]]
    query: Callable[[str], Vector]


def _model2vec(name: str) -> Embedder:
    package = _package("model2vec", "model2vec")
    with _loading(name):
        model = package.StaticModel.from_pretrained(name, force_download=False)

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return _floats(model.encode(list(texts)))

    return _model("model2vec", name, embed, lambda text: embed([text])[0])


def _sentence_transformers(name: str) -> Embedder:
    package = _package("sentence_transformers", "sentence-transformers")
    with _loading(name):
        model = package.SentenceTransformer(name)

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return _floats(model.encode_document(list(texts), show_progress_bar=False))

    def query(text: str) -> Vector:
        return _floats(model.encode_query([text], show_progress_bar=False))[0]

    return _model("sentence-transformers", name, embed, query)


def _fastembed(name: str) -> Embedder:
    package = _package("fastembed", "fastembed")
    with _loading(name):
        model = package.TextEmbedding(name)

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return _floats(model.passage_embed(list(texts)))

    return _model("fastembed", name, embed, lambda text: _floats(model.query_embed(text))[0])


def _package(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"The embedder {extra!r} needs a package: pip install 'foveate[{extra}]' ({error})") from None


@contextmanager
def _loading(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"The embedding model {name!r} cannot be loaded: {' '.join(str(error).split())}") from error


def _floats(rows: Iterable[Any]) -> list[Vector]:
    """Rows of a NumPy array as plain lists."""
    return [row.tolist() for row in rows]


def _model(
    provider: str, name: str, embed: Callable[[Sequence[str]], Sequence[Vector]], query: Callable[[str], Vector]
) -> Embedder:
    dim = len(embed([PROBE])[0])
    folder = Path(name)
    known = f"{folder.resolve().name}:{dim}:{_revision(folder)}" if folder.is_dir() else f"{name}:{dim}"
    return _Model(f"{provider}:{known}", dim, embed, query)


def _revision(folder: Path) -> str:
    """A digest of the model's files: one that was trained anew in the same place is another model."""
    digest = blake2b(digest_size=8)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in MODEL_FILES):
        with path.open("rb") as file:
            digest.update(path.name.encode() + file_digest(file, blake2b).digest())
    return digest.hexdigest()


# --- hashing -------------------------------------------------------------------------------------------------------

HASH_REVISION = 1
"""Raise it when the features change: vectors of before and after must not be compared."""
LETTERS_WEIGHT = 0.5
"""Of three letters against a whole word: `caching` comes near `cached`, and words still decide."""
LETTERS = 3
WORD = re.compile(r"\w+|[^\w\s]+")


def _hash(dim: str) -> Embedder:
    if not (dim.isascii() and dim.isdigit() and int(dim) > 0):
        raise InputError(f"The embedder 'hash:{dim}' wants a dimension, a whole number above zero: `hash:256`.")

    def query(text: str) -> Vector:
        return _hashed(text, int(dim))

    return _Model(f"hash:{int(dim)}:{HASH_REVISION}", int(dim), lambda texts: [query(text) for text in texts], query)


def _hashed(text: str, dim: int) -> Vector:
    vector = [0.0] * dim
    for feature, weight in _features(text):
        code = crc32(feature.encode("utf-8", "surrogatepass"))
        vector[code % dim] += weight if code >> 31 else -weight
    return vector


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in WORD.findall(text.casefold()):
        yield word, 1.0
        edged = f"<{word}>"
        for start in range(len(edged) - LETTERS + 1):
            yield edged[start : start + LETTERS], LETTERS_WEIGHT


# --- an endpoint ---------------------------------------------------------------------------------------------------


def _openai(model: str) -> Embedder:
    url = os.environ.get("FOVEATE_EMBED_URL", "").strip() or DEFAULT_URL
    return Endpoint(model, url, os.environ.get("FOVEATE_EMBED_KEY", "").strip())


class Endpoint:
    """A model behind OpenAI's protocol. Its dimension is learnt from its first answer."""

    def __init__(self, model: str, url: str, key: str = "", *, pause: Callable[[float], None] = time.sleep) -> None:
        check_endpoint(url, key, "FOVEATE_EMBED_URL", "FOVEATE_EMBED_KEY")
        self._model, self._key, self._pause = model, key, pause
        self._url = url.rstrip("/") + "/embeddings"
        self._opener = opener(url)
        self._dim: int | None = None

    @property
    def dim(self) -> int:
        return len(self.query(PROBE)) if self._dim is None else self._dim

    @property
    def fingerprint(self) -> str:
        return f"openai:{self._model}:{self.dim}"

    def embed(self, texts: Sequence[str], /) -> Sequence[Vector]:
        vectors = self._vectors(self._post({"model": self._model, "input": list(texts)}))
        if self._dim is None:
            self._dim = len(vectors[0])
        return vectors

    def query(self, text: str, /) -> Vector:
        return self.embed([text])[0]

    def _vectors(self, answer: Any) -> Sequence[Vector]:
        try:
            rows = sorted(answer["data"], key=lambda row: row.get("index", 0))
            vectors = [[float(x) for x in row["embedding"]] for row in rows]
        except (AttributeError, KeyError, TypeError, ValueError):
            vectors = []
        if not vectors or not all(vectors):
            raise SourceError(f"The embedding endpoint {self._url!r} answered without vectors.")
        return vectors

    def _post(self, body: Any, attempt: int = 1) -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        try:
            with self._opener.open(Request(self._url, json.dumps(body).encode(), headers), timeout=TIMEOUT) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                if error.code not in RETRIED or attempt == ATTEMPTS:
                    raise SourceError(self._refusal(error)) from None
                wait = _pause_after(attempt, error.headers.get("Retry-After", ""))
        except (OSError, HTTPException, ValueError) as error:
            hint = "Is it running, and is FOVEATE_EMBED_URL right?"
            raise SourceError(f"The embedding endpoint {self._url!r} gave no answer: {error}. {hint}") from None
        self._pause(wait)
        return self._post(body, attempt + 1)

    def _refusal(self, error: HTTPError) -> str:
        said = " ".join(error.read(DETAIL_CHARS).decode("utf-8", "replace").split())
        said = said.replace(self._key, "***") if self._key else said
        hint = " Set FOVEATE_EMBED_KEY to a key that may use it." if error.code in (401, 403) else ""
        return f"The embedding endpoint {self._url!r} answered {error.code} for model {self._model!r}: {said}.{hint}"


def check_endpoint(url: str, key: str, url_name: str, key_name: str) -> None:
    """Refuse what is no web address or no key, by the names under which they were given."""
    problems = []
    if urlsplit(url).scheme not in ("http", "https"):
        problems.append(f"{url_name} is no web address. Write `http://` or `https://`, a host and a path.")
    if urlsplit(url).username is not None:
        problems.append(f"{url_name} holds a name or password. Put the key into {key_name}.")
    if not (key.isascii() and key.isprintable()):
        problems.append(f"{key_name} holds characters that no key has. Was it copied whole?")
    if problems:
        raise InputError(problems)


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener(url: str) -> OpenerDirector:
    """What opens the URL: without redirects, and on this machine without a proxy."""
    local = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
    return build_opener(_NoRedirects, ProxyHandler({}) if local else ProxyHandler())


def _pause_after(attempt: int, asked: str) -> float:
    """Seconds: what the endpoint asks for, else doubled each time; never longer than the longest."""
    wanted = float(asked) if asked.isascii() and asked.isdigit() else FIRST_PAUSE * 2 ** (attempt - 1)
    return min(wanted, LONGEST_PAUSE)


_PROVIDERS: Mapping[str, Callable[[str], Embedder]] = {
    "model2vec": _model2vec,
    "sentence-transformers": _sentence_transformers,
    "fastembed": _fastembed,
    "openai": _openai,
    "hash": _hash,
}
