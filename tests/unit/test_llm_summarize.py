"""A language model may write the short lengths: ahead of time, logged, and never trusted blindly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foveate
from foveate.cli import cli
from foveate.memory.backfill import rewrite_summaries
from foveate.text.llm_summarize import LlmSummarizer, open_summarizer
from foveate.text.summarize import ExtractiveSummarizer
from worlds import open_engine

LONG = (
    "The import job stopped at night. It ran out of memory on the file from March. The log showed that each row was kept "
    "twice, once as text and once parsed. We fixed it by reading the file in batches of 1000 rows. Memory stays under 200 "
    "MB now. A test with a large file makes sure that it stays so. Nobody had to change the format of the file, and those "
    "who send it were told. The job was run again by hand in the morning and has been fine for two weeks since then."
)
GOOD = {"summary": "The import ran out of memory; reading 1000 rows at a time fixed it.", "micro": "Import fixed: batches"}


class Endpoint(HTTPServer):
    """A provider on loopback: answers what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.says: Any = GOOD
        self.status = 200
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        said = self.server.says if isinstance(self.server.says, str) else json.dumps(self.server.says)
        if self.path.endswith("/messages"):
            answer: dict[str, Any] = {"content": [{"text": said}], "usage": {"input_tokens": 210, "output_tokens": 33}}
        else:
            usage = {"prompt_tokens": 200, "completion_tokens": 30}
            answer = {"choices": [{"message": {"content": said}}], "usage": usage}
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_openai_endpoint_shortens_and_its_cost_is_logged(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """003-109, 004-45"""
    monkeypatch.setenv("FOVEATE_SUMMARIZE_KEY", "key-for-tests")
    model = open_summarizer(f"openai:small@{endpoint.url}", tmp_path / "costs.jsonl")
    found = model.shorten(LONG, "Import")
    assert (found.summary, found.micro) == (GOOD["summary"], GOOD["micro"])
    path, headers, body = endpoint.asked[0]
    assert (path, body["model"], headers["authorization"]) == ("/v1/chat/completions", "small", "Bearer key-for-tests")
    assert LONG in body["messages"][0]["content"]
    logged = json.loads((tmp_path / "costs.jsonl").read_text("utf-8"))
    assert (logged["model"], logged["in"], logged["out"]) == ("openai:small", 200, 30)
    assert "import job" not in json.dumps(logged)


def test_anthropic_is_spoken_too(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_SUMMARIZE_KEY", "key-for-tests")
    model = open_summarizer(f"anthropic:small@{endpoint.url}", tmp_path / "costs.jsonl")
    assert model.shorten(LONG).summary == GOOD["summary"]
    path, headers, _ = endpoint.asked[0]
    assert (path, headers["x-api-key"]) == ("/v1/messages", "key-for-tests")
    assert json.loads((tmp_path / "costs.jsonl").read_text("utf-8"))["in"] == 210


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("Sure! Here is a summary.", "not the JSON object"),
        ({"summary": "", "micro": "x"}, "empty"),
        ({"summary": "word " * 400, "micro": "x"}, "too long"),
        ({"summary": "It took 77 hours.", "micro": "Import"}, "names 77"),
    ],
)
def test_a_bad_answer_leaves_the_extractive_lengths(endpoint: Endpoint, says: Any, why: str) -> None:
    endpoint.says = says
    model = LlmSummarizer("openai", "small", endpoint.url)
    assert model.shorten(LONG) == ExtractiveSummarizer().shorten(LONG)
    assert why in model.failed


def test_an_endpoint_that_refuses_or_is_gone_leaves_them_too(endpoint: Endpoint) -> None:
    endpoint.status = 401
    model = LlmSummarizer("openai", "small", endpoint.url)
    assert model.shorten(LONG) == ExtractiveSummarizer().shorten(LONG)
    assert "FOVEATE_SUMMARIZE_KEY" in model.failed
    gone = LlmSummarizer("openai", "small", "http://127.0.0.1:9/v1", timeout_s=0.5)
    assert gone.shorten(LONG) == ExtractiveSummarizer().shorten(LONG)
    assert "gave no answer" in gone.failed


def test_a_short_text_costs_no_call(endpoint: Endpoint) -> None:
    assert (
        LlmSummarizer("openai", "small", endpoint.url).shorten("Deploys are on Tuesdays").summary
        == "Deploys are on Tuesdays"
    )
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("opnai:small", "Did you mean 'openai'"),
        ("openai:", "names no model"),
        ("openai:small@ftp://host/v1", "must be a web address"),
        ("openai:small@http://me:secret@host/v1", "Put the key into FOVEATE_SUMMARIZE_KEY"),
    ],
)
def test_a_wrong_setting_says_what_to_write(spec: str, message: str) -> None:
    with pytest.raises(foveate.InputError, match=message):
        open_summarizer(spec)


# --- on write, by maintenance, never by a context --------------------------------------------------------------------


def test_a_model_is_asked_by_maintenance_and_never_by_a_context(endpoint: Endpoint) -> None:
    with open_engine(llm=LlmSummarizer("openai", "small", endpoint.url)) as engine:
        record = engine.add("episode", LONG).record
        assert not endpoint.asked
        engine.store.maintain(only=["summaries"])
        assert engine.get(record.id).summary == GOOD["summary"]
        calls = len(endpoint.asked)
        context = engine.context(
            "why did the import stop?",
            extra=["The report is slow. " + "Nobody reads it on Mondays. " * 30],
            overrides={"slots": {"episodes": {"level": "summary", "max_level": "summary"}}},
        )
        assert GOOD["summary"] in context.text
        assert len(endpoint.asked) == calls


def test_compact_rewrites_what_was_extracted_and_nothing_else(endpoint: Endpoint) -> None:
    with open_engine() as engine:
        extracted = engine.add("episode", LONG).record
        written = engine.add("episode", LONG + " It was fine.", summary="By hand.", micro="Hand.").record
        short = engine.add("fact", "Deploys are on Tuesdays").record
        engine.add("event", LONG)
        model = LlmSummarizer("openai", "small", endpoint.url)
        assert rewrite_summaries(engine.store.data, model, dry_run=True).candidates == 1
        assert endpoint.asked == []
        done = rewrite_summaries(engine.store.data, model)
        assert (done.rewritten, done.unchanged) == (1, 0)
        assert engine.get(extracted.id).summary == GOOD["summary"]
        assert engine.get(extracted.id).text == LONG
        assert engine.get(written.id) == written
        assert engine.get(short.id) == short
        assert rewrite_summaries(engine.store.data, model).candidates == 0
        engine.undo(extracted.id)
        assert engine.get(extracted.id).summary == extracted.summary


def test_compact_stops_at_its_limit(endpoint: Endpoint) -> None:
    with open_engine() as engine:
        for n in range(3):
            engine.add("episode", f"Job {n}. {LONG}")
        assert rewrite_summaries(engine.store.data, LlmSummarizer("openai", "small", endpoint.url), limit=2).rewritten == 2
        assert len(endpoint.asked) == 2


def test_what_changes_while_the_model_thinks_is_left_alone() -> None:
    with open_engine() as engine:
        record = engine.add("episode", LONG).record

        class Slow:
            def shorten(self, text: str, title: str = "") -> Any:
                engine.edit(record.id, tags=["changed"])
                return ExtractiveSummarizer().shorten("Another text")

        done = rewrite_summaries(engine.store.data, Slow())
        assert (done.rewritten, done.unchanged) == (0, 1)
        assert engine.get(record.id).summary == record.summary


def test_the_command(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*args: str) -> Any:
        return runner.invoke(cli, args)

    run("init")
    run("add", "episode", LONG)
    assert "summarizer = " in run("store", "maintain", "--only", "summaries").stderr
    assert "1 record  summarize" in run("store", "maintain", "--only", "summaries", "--dry-run").stdout
    (tmp_path / ".foveate" / "config.toml").write_text(f'summarizer = "openai:small@{endpoint.url}"\n', "utf-8")
    (step,) = json.loads(run("store", "maintain", "--json").stdout)["steps"]
    assert (step["verb"], step["number"], step["error"]) == ("summarize", 1, "")
    assert len((tmp_path / ".foveate" / "costs.jsonl").read_text("utf-8").splitlines()) == 1
    endpoint.says = "no"
    run("add", "episode", "Again. " + LONG)
    failed = run("store", "maintain")
    assert (failed.exit_code, "not the JSON object" in failed.stderr) == (1, True)
