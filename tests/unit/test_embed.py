"""Embedders: the hashing one for what vectors must be like, a real server on the loopback for the endpoint."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from foveate.errors import InputError, SourceError
from foveate.text import embed
from foveate.text.embed import CachedEmbedder, HttpEmbedder, Vector, embed_or_none, open_embedder, query_or_none

DIM = 8


# --- hashing -------------------------------------------------------------------------------------------------------


def test_hashing_gives_the_same_vectors_in_another_process() -> None:
    text = "Use Redis — schnell, 快い 🙂"
    code = f"from foveate.text.embed import open_embedder; print(list(open_embedder('hash:64').query({text!r})))"
    env = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8"}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, text=True).stdout
    assert json.loads(said) == list(open_embedder("hash:64").query(text))


def test_similar_texts_are_nearer_than_dissimilar_ones() -> None:
    by = open_embedder("hash:256")
    asked = by.query("How do we cache sessions in Redis?")
    near, far = by.embed(["Session caching uses Redis.", "The invoice template has a new footer."])
    assert _cosine(asked, near) > _cosine(asked, far) + 0.1


@pytest.mark.parametrize("text", ["one", "two words", "🙂", "!?", "lone \ud800 surrogate", "x" * 10_000])
def test_vectors_have_length_one(text: str) -> None:
    [vector] = open_embedder("hash:64").embed([text])
    assert len(vector) == 64
    assert math.hypot(*vector) == pytest.approx(1)


def test_a_text_without_words_has_a_vector_of_zeros() -> None:
    assert set(open_embedder("hash:16").query(" \n")) == {0.0}


def test_the_fingerprint_names_provider_dimension_and_revision() -> None:
    by = open_embedder("hash:64")
    assert (by.fingerprint, by.dim) == ("hash:64:1", 64)


@pytest.mark.parametrize("dim", ["0", "-1", "many", "1.5"])
def test_hashing_wants_a_dimension(dim: str) -> None:
    with pytest.raises(InputError, match="whole number above zero"):
        open_embedder(f"hash:{dim}")


# --- choosing a provider -------------------------------------------------------------------------------------------


def test_an_unknown_provider_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"Unknown embedding provider 'model2vek'\. Did you mean 'model2vec'\?"):
        open_embedder("model2vek:potion")


def test_a_spec_without_a_model_says_how_to_write_one() -> None:
    with pytest.raises(InputError, match="Write `openai:MODEL`"):
        open_embedder("openai")


@pytest.mark.parametrize("provider", ["model2vec", "sentence-transformers", "fastembed"])
def test_a_missing_package_names_its_extra(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, provider.replace("-", "_"), None)
    with pytest.raises(InputError, match=rf"pip install 'foveate\[{provider}\]'"):
        open_embedder(f"{provider}:some-model")


def test_importing_the_module_imports_no_provider() -> None:
    code = (
        "import sys, foveate.text.embed;"
        "sys.exit(bool({'numpy', 'model2vec', 'sentence_transformers', 'fastembed', 'openai'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


def test_a_model2vec_model_in_a_folder_is_known_by_its_content(tmp_path: Any) -> None:
    model2vec = pytest.importorskip("model2vec")
    numpy, tokenizers = pytest.importorskip("numpy"), pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "red": 1, "blue": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    vectors = numpy.array([[0, 0, 1], [3, 0, 0], [0, 4, 0]], dtype="float32")
    model2vec.StaticModel(vectors, words).save_pretrained(tmp_path / "colours")

    by = open_embedder(f"model2vec:{tmp_path / 'colours'}")

    assert by.embed(["red", "blue"]) == [(1, 0, 0), (0, 1, 0)]
    assert by.fingerprint.startswith("model2vec:colours:3:")
    model2vec.StaticModel(vectors * 2 + 1, words).save_pretrained(tmp_path / "colours")
    assert open_embedder(f"model2vec:{tmp_path / 'colours'}").fingerprint != by.fingerprint


def test_a_model_that_is_not_there_is_the_callers_mistake() -> None:
    pytest.importorskip("fastembed")
    with pytest.raises(InputError, match="'no-such-model' cannot be loaded"):
        open_embedder("fastembed:no-such-model")


# --- what every embedder gets --------------------------------------------------------------------------------------


class Own:
    """An embedder as a user would write it; remembers what it was asked."""

    fingerprint = "own:2"
    dim = 2

    def __init__(self, vector: Vector = (3.0, 4.0)) -> None:
        self.vector = vector
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str], /) -> Sequence[Vector]:
        self.asked.append(list(texts))
        return [self.vector for _ in texts]

    def query(self, text: str, /) -> Vector:
        return self.embed([text])[0]


def test_texts_are_embedded_in_batches_and_in_order() -> None:
    own, texts = Own(), [str(i) for i in range(150)]
    vectors = CachedEmbedder(own).embed(texts)
    assert [len(batch) for batch in own.asked] == [64, 64, 22]
    assert [text for batch in own.asked for text in batch] == texts
    assert vectors == [(0.6, 0.8)] * 150


def test_a_query_is_asked_once() -> None:
    own = Own()
    by = CachedEmbedder(own)
    assert by.query("same") == by.query("same") == (0.6, 0.8)
    assert own.asked == [["same"]]


def test_old_queries_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "MAX_CACHED_QUERIES", 2)
    own = Own()
    by = CachedEmbedder(own)
    for text in ("a", "b", "a", "c", "a", "b"):
        by.query(text)
    assert own.asked == [["a"], ["b"], ["c"], ["b"]]


@pytest.mark.parametrize("vector", [(1.0,), (1.0, 2.0, 3.0)])
def test_a_vector_of_another_dimension_is_refused(vector: Vector) -> None:
    with pytest.raises(SourceError, match=f"dimension {len(vector)}, not 2"):
        CachedEmbedder(Own(vector)).embed(["x"])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_vector_without_finite_numbers_is_refused(bad: float) -> None:
    with pytest.raises(SourceError, match="finite"):
        CachedEmbedder(Own((bad, 1.0))).embed(["x"])


def test_a_vector_too_few_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "embed", lambda *_: [(1.0, 0.0)])
    with pytest.raises(SourceError, match="1 vectors for 2 texts"):
        CachedEmbedder(Own()).embed(["x", "y"])


def test_success_has_vectors_and_no_reason() -> None:
    assert embed_or_none(CachedEmbedder(Own()), ["x"]) == ([(0.6, 0.8)], "")
    assert query_or_none(CachedEmbedder(Own()), "x") == ((0.6, 0.8), "")


def test_a_failure_has_a_reason_in_one_line_and_no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("out of\n  memory")

    monkeypatch.setattr(Own, "embed", fail)
    assert embed_or_none(CachedEmbedder(Own()), ["x"]) == (None, "RuntimeError: out of memory")
    assert query_or_none(CachedEmbedder(Own()), "x") == (None, "RuntimeError: out of memory")


# --- an endpoint ---------------------------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """Answers with vectors, after the `refusals` that a test has lined up."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.dim = DIM
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.body: Any = None
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        server = self.server
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append(asked | {"path": self.path})
        server.keys.append(self.headers["Authorization"])
        if server.refusals:
            code, headers = server.refusals.pop(0)
            return self._answer(code, {"error": {"message": f"no, {self.headers['Authorization']}"}}, headers)
        rows = [
            {"index": i, "embedding": [float(len(text)), 1.0] + [0.0] * (server.dim - 2)}
            for i, text in enumerate(asked["input"])
        ]
        return self._answer(200, server.body if server.body is not None else {"data": rows[::-1]}, {})

    do_GET = do_POST

    def _answer(self, code: int, body: Any, headers: dict[str, str]) -> None:
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in (headers | {"Content-Length": str(len(payload))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("FOVEATE_EMBED_URL", running.url)
        monkeypatch.delenv("FOVEATE_EMBED_KEY", raising=False)
        yield running
        running.shutdown()
        thread.join()


def test_an_endpoint_is_asked_in_batches_and_answers_in_order(server: Server) -> None:
    by = open_embedder("openai:small")
    assert server.requests == []
    vectors = by.embed(["x" * i for i in range(100)])
    assert [len(request["input"]) for request in server.requests] == [64, 36]
    assert {(request["path"], request["model"]) for request in server.requests} == {("/v1/embeddings", "small")}
    assert [round(vector[0] / vector[1]) for vector in vectors] == list(range(100))
    assert math.hypot(*vectors[7]) == pytest.approx(1)


def test_an_endpoints_dimension_is_learnt_from_its_first_answer(server: Server) -> None:
    by = open_embedder("openai:small")
    by.query("hello")
    assert (by.dim, by.fingerprint, len(server.requests)) == (DIM, f"openai:small:{DIM}", 1)


def test_an_endpoints_fingerprint_can_be_asked_first(server: Server) -> None:
    assert open_embedder("openai:small").fingerprint == f"openai:small:{DIM}"


def test_the_key_is_sent_as_a_bearer_token(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_EMBED_KEY", "sk-secret\n")
    open_embedder("openai:small").query("hello")
    assert server.keys == ["Bearer sk-secret"]


def test_a_proxy_is_not_asked_for_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert len(open_embedder("openai:small").query("hello")) == DIM


def test_a_busy_endpoint_is_asked_again_after_growing_pauses(server: Server) -> None:
    server.refusals = [(429, {}), (503, {}), (500, {})]
    pauses: list[float] = []
    assert len(HttpEmbedder("small", server.url, sleep=pauses.append).query("hello")) == DIM
    assert pauses == [0.5, 1.0, 2.0]


def test_a_pause_that_the_endpoint_asks_for_is_kept_up_to_the_longest(server: Server) -> None:
    server.refusals = [(429, {"Retry-After": "3"}), (429, {"Retry-After": "3600"})]
    pauses: list[float] = []
    HttpEmbedder("small", server.url, sleep=pauses.append).query("hello")
    assert pauses == [3.0, 4.0]


def test_an_endpoint_that_stays_busy_is_given_up(server: Server) -> None:
    server.refusals = [(429, {})] * 10
    with pytest.raises(SourceError, match="answered 429"):
        HttpEmbedder("small", server.url, sleep=lambda _: None).query("hello")
    assert len(server.requests) == 4


def test_a_refused_key_is_named_but_not_shown(server: Server) -> None:
    server.refusals = [(401, {})]
    with pytest.raises(SourceError, match=r"answered 401 for model 'small'.*Set FOVEATE_EMBED_KEY") as caught:
        HttpEmbedder("small", server.url, "sk-secret").query("hello")
    assert "sk-secret" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed_with_the_key(server: Server) -> None:
    server.refusals = [(302, {"Location": f"{server.url}/elsewhere"})]
    with pytest.raises(SourceError, match="answered 302"):
        HttpEmbedder("small", server.url, "sk-secret").query("hello")
    assert len(server.requests) == 1


def test_a_dimension_that_changes_is_refused(server: Server) -> None:
    by = open_embedder("openai:small")
    by.query("hello")
    server.dim = DIM + 1
    with pytest.raises(SourceError, match=f"dimension {DIM + 1}, not {DIM}"):
        by.query("again")


@pytest.mark.parametrize("body", [{}, [], {"data": []}, {"data": [{"embedding": []}]}, {"data": [{"embedding": ["x"]}]}])
def test_an_answer_without_vectors_is_refused(body: Any, server: Server) -> None:
    server.body = body
    with pytest.raises(SourceError, match="answered without vectors"):
        open_embedder("openai:small").query("hello")


def test_an_answer_that_is_not_json_is_refused(server: Server) -> None:
    server.body = b"<html>"
    with pytest.raises(SourceError, match="gave no answer"):
        open_embedder("openai:small").query("hello")


def test_an_endpoint_that_is_not_there_leaves_a_reason(server: Server) -> None:
    server.server_close()
    vectors, reason = embed_or_none(open_embedder("openai:small"), ["hello"])
    assert vectors is None
    assert "gave no answer" in reason
    assert "FOVEATE_EMBED_URL" in reason


def test_every_problem_of_an_endpoints_settings_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_EMBED_URL", "ftp://me:pass@host/v1")
    monkeypatch.setenv("FOVEATE_EMBED_KEY", "sk-\u2026")
    with pytest.raises(InputError) as caught:
        open_embedder("openai:small")
    assert len(caught.value.problems) == 3
    assert "pass@" not in str(caught.value)


def _cosine(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
