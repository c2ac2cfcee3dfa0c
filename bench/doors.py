"""Measures every entry point with its defaults: what a conversation left behind is asked for in a new session.

The conversation of `doors.toml` goes in through each entry point as a user's program would hand it over, one session after
the other. Then each question is asked in a session of its own. A question counts if the whole text of every turn that it
needs is in what the entry point adds to the prompt; with passages, it also counts if a part of the turn with every content
word of the answer is there. Prompts about other things show what is sent without need.

No option is set, except a budget where an entry point has one. Sessions have their names, apart from MCP, which knows none.
Frameworks run with their own fake models, whose answers are those of the conversation. Whatever stores the prompt is asked
through a copy of the store, so that no question sees another.

    FOVEATE_BENCH_DOORS    comma-separated entry points instead of all
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import Any

import foveate
from bench.adapters import opened_copy
from foveate.errors import InputError
from foveate.eval.evidence import EvidenceText, PassageEvidence, turn_evidence
from foveate.eval.model import Case, Dataset, Document, RenderedPrompt
from foveate.eval.systems.baselines import DocumentRanking, build_fts5_index
from foveate.pipeline import profiles
from foveate.text import tokens

CONVERSATION_FILE = Path(__file__).with_suffix(".toml")
BUDGET = 1000
NEW_SESSION = "a-new-session"
UNIMPORTANT_ANSWER = "OK."

MIN_SHARE_OF_BEST = 0.95
"""Target: the evidence that each entry point finds, as a share of what the best profile finds at the same budget."""
MIN_SILENT_SHARE = 0.9
"""Target: unrelated prompts to which a hook adds nothing."""
MAX_UNRELATED_TOKENS = 100
"""Target: the median that the library sends for an unrelated prompt."""

Ask = Callable[[str], str]
"""Asks in a new session, and returns what was added to the prompt."""
Turn = Callable[[str, str], str]
"""Sends a user's message to a model that gives the answer, and returns what was added to the message."""


# --- the conversation ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    session: str
    role: str
    text: str
    date: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    answer: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]
    unrelated: tuple[str, ...]

    def sessions(self) -> dict[str, list[Message]]:
        sessions: dict[str, list[Message]] = {}
        for message in self.messages:
            sessions.setdefault(message.session, []).append(message)
        return sessions

    def evidence(self, question: Question) -> tuple[EvidenceText | PassageEvidence, ...]:
        texts = {message.id: message.text for message in self.messages}
        return turn_evidence([(id, texts[id]) for id in question.evidence], question.answer)


def read_conversation(path: Path = CONVERSATION_FILE) -> Conversation:
    table = tomllib.loads(path.read_text("utf-8"))
    messages = tuple(
        Message(f"{exchange['id']}.{role}", session["name"], role, exchange[role].strip(), session["date"])
        for session in table["sessions"]
        for exchange in session["exchanges"]
        for role in ("user", "assistant")
    )
    questions = tuple(Question(each["question"], each["answer"], tuple(each["evidence"])) for each in table["questions"])
    return Conversation(messages, questions, tuple(table["unrelated"]["prompts"]))


# --- the entry points ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Door:
    """An entry point: `fill` hands the conversation over to a new store, `ask` asks it about that."""

    name: str
    fill: Callable[[Path, Conversation], None]
    ask: Callable[[Path], AbstractContextManager[Ask]]


def rows_of(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text, "at": message.date} for message in messages]


def added_text(texts: Iterable[str], prompt: str) -> str:
    """Return the texts that a model received besides the user's own."""
    return "\n".join(text for text in texts if text and text != prompt)


def fill_library(folder: Path, conversation: Conversation) -> None:
    with foveate.open(folder, personal=False) as engine:
        for session, messages in conversation.sessions().items():
            engine.remember(rows_of(messages), session=session)  # type: ignore[arg-type]


@contextmanager
def ask_library(store: Path, **options: Any) -> Iterator[Ask]:
    with foveate.open(store, personal=False) as engine:
        yield lambda prompt: engine.context(prompt, budget=BUDGET, **options).text


def chat_door(name: str, open_chat: Callable[[foveate.Engine, str], Turn]) -> Door:
    """Return the door of an adapter that stores the messages of the conversations that it takes part in."""

    def fill(folder: Path, conversation: Conversation) -> None:
        with foveate.open(folder, personal=False) as engine:
            for session, messages in conversation.sessions().items():
                turn = open_chat(engine, session)
                for user, assistant in zip(messages[::2], messages[1::2], strict=True):
                    turn(user.text, assistant.text)

    @contextmanager
    def ask(store: Path) -> Iterator[Ask]:
        def ask_copy(prompt: str) -> str:
            with opened_copy(store) as engine:
                return open_chat(engine, NEW_SESSION)(prompt, UNIMPORTANT_ANSWER)

        yield ask_copy

    return Door(name, fill, ask)


def openai_chat(engine: foveate.Engine, session: str) -> Turn:
    from foveate.integrations import openai_messages

    history: list[dict[str, str]] = []

    def turn(prompt: str, answer: str) -> str:
        history.append({"role": "user", "content": prompt})
        sent = openai_messages.messages_for(engine, history, session=session, budget=BUDGET)
        history.append({"role": "assistant", "content": answer})
        openai_messages.remember(engine, history, session=session)
        return added_text((message["content"] for message in sent), prompt)

    return turn


def anthropic_chat(engine: foveate.Engine, session: str) -> Turn:
    from foveate.integrations import anthropic_messages

    history: list[dict[str, str]] = []

    def turn(prompt: str, answer: str) -> str:
        history.append({"role": "user", "content": prompt})
        sent = anthropic_messages.messages_for(engine, history, session=session, budget=BUDGET)
        history.append({"role": "assistant", "content": answer})
        anthropic_messages.remember(engine, history, session=session)
        contents = [sent["system"], *(message["content"] for message in sent["messages"])]
        return added_text((block["text"] for content in contents for block in content), prompt)

    return turn


def pydantic_ai_chat(engine: foveate.Engine, session: str) -> Turn:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from foveate.integrations.pydantic_ai import ComputedContext

    received: list[str] = []
    answers: list[str] = []
    history: list[Any] = []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        received[:] = [info.instructions or "", *(str(part.content) for part in parts)]
        return ModelResponse([TextPart(answers[-1])])

    agent = Agent(FunctionModel(model), capabilities=[ComputedContext(engine, budget=BUDGET)])

    def turn(prompt: str, answer: str) -> str:
        answers.append(answer)
        result = asyncio.run(agent.run(prompt, message_history=history, conversation_id=session))
        history[:] = result.all_messages()
        return added_text(received, prompt)

    return turn


def langchain_chat(engine: foveate.Engine, session: str) -> Turn:
    from langchain.agents import create_agent
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from foveate.integrations.langchain import ComputedContext

    received: list[str] = []

    class Model(FakeListChatModel):
        def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
            received[:] = [message.text for message in messages]
            return super()._generate(messages, *args, **options)

    model = Model(responses=[""])
    context = ComputedContext(engine, budget=BUDGET)
    agent: Any = create_agent(model, middleware=[context], checkpointer=InMemorySaver())

    def turn(prompt: str, answer: str) -> str:
        model.responses, model.i = [answer], 0
        agent.invoke({"messages": [HumanMessage(prompt)]}, {"configurable": {"thread_id": session}})
        return added_text(received, prompt)

    return turn


# --- entry points that are processes ---------------------------------------------------------------------------------


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a user's shell, without those of a coding agent and without the user's own store."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    package, bench = Path(foveate.__file__).parents[1], Path(__file__).parents[1]
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(map(str, (package, bench)))}


def run_program(folder: Path, module: str, *arguments: str, text: str = "") -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(folder), input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def send_hook(folder: Path, name: str, **fields: str) -> str:
    """Send an event as Claude Code does, and return the context of the answer."""
    event = {"hook_event_name": name, "cwd": str(folder), **fields}
    output = run_program(folder, "foveate.integrations.hooks.program", "claude", text=json.dumps(event))
    return str(json.loads(output)["hookSpecificOutput"]["additionalContext"]) if output.strip() else ""


def fill_hooks(folder: Path, conversation: Conversation) -> None:
    run_program(folder, "foveate", "init")
    for session, messages in conversation.sessions().items():
        send_hook(folder, "SessionStart", session_id=session, source="startup")
        for message in messages:
            if message.role == "user":
                send_hook(folder, "UserPromptSubmit", session_id=session, prompt_id=message.id, prompt=message.text)
            else:
                send_hook(folder, "Stop", session_id=session, prompt_id=message.id, last_assistant_message=message.text)


@contextmanager
def ask_hooks(store: Path) -> Iterator[Ask]:
    def ask(prompt: str) -> str:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            copytree(store, folder, dirs_exist_ok=True)
            start = send_hook(folder, "SessionStart", session_id=NEW_SESSION, source="startup")
            return start + send_hook(folder, "UserPromptSubmit", session_id=NEW_SESSION, prompt=prompt)

    yield ask


def fill_cli(folder: Path, conversation: Conversation) -> None:
    run_program(folder, "foveate", "init")
    for session, messages in conversation.sessions().items():
        file = folder / f"{session}.json"
        file.write_text(json.dumps(rows_of(messages)), "utf-8")
        run_program(folder, "foveate", "remember", "--trust", "user", file.name)


@contextmanager
def ask_cli(store: Path) -> Iterator[Ask]:
    yield lambda prompt: run_program(store, "foveate", "context", prompt, "--budget", str(BUDGET), "--session", NEW_SESSION)


@contextmanager
def mcp_client(folder: Path) -> Iterator[Callable[..., str]]:
    """Start `foveate mcp`, and yield a function that calls a tool and returns its text."""
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters

    arguments = ["-m", "foveate", "mcp", "--store", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment(folder), cwd=folder)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:

        def call(tool: str, **arguments: Any) -> str:
            result = portal.call(client.call_tool, tool, arguments)
            text = "\n".join(part.text for part in result.content)  # type: ignore[union-attr]
            if result.is_error:
                raise RuntimeError(f"{tool}: {text}")
            return text

        yield call


def fill_mcp(folder: Path, conversation: Conversation) -> None:
    """Store each session by one call of the tool `remember`."""
    run_program(folder, "foveate", "init")
    for session, messages in conversation.sessions().items():
        with mcp_client(folder) as call:
            call("remember", messages=rows_of(messages), session=session)


@contextmanager
def ask_mcp(store: Path) -> Iterator[Ask]:
    with mcp_client(store) as call:
        yield lambda prompt: call("get_context", query=prompt, budget=BUDGET)


@contextmanager
def http_client(folder: Path) -> Iterator[Callable[..., Any]]:
    """Start `foveate serve`, and yield a function that posts a JSON body to a path."""
    file = folder / ".foveate" / "service.json"
    command = [sys.executable, "-m", "foveate", "serve", "--port", "0"]
    with (
        open(folder / "log", "w") as log,
        subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=log, stdout=log) as server,
    ):
        try:
            while not file.exists():
                if server.poll() is not None:
                    raise RuntimeError(f"The service did not start: {(folder / 'log').read_text()}")
                time.sleep(0.05)
            url = json.loads(file.read_text("utf-8"))["url"]

            def post(path: str, **body: Any) -> Any:
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(f"{url}{path}", json.dumps(body).encode(), headers)
                with urllib.request.urlopen(request) as response:
                    return json.load(response)

            yield post
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def fill_http(folder: Path, conversation: Conversation) -> None:
    run_program(folder, "foveate", "init")
    with http_client(folder) as post:
        for session, messages in conversation.sessions().items():
            post("/v1/remember", messages=rows_of(messages), session=session)


@contextmanager
def ask_http(store: Path) -> Iterator[Ask]:
    with http_client(store) as post:
        yield lambda prompt: str(post("/v1/contexts", query=prompt, budget=BUDGET, session=NEW_SESSION)["text"])


HOOKS = "hooks"
LIBRARY = "library"
DOORS = (
    Door(LIBRARY, fill_library, partial(ask_library, session=NEW_SESSION)),
    Door("library, no session", fill_library, ask_library),
    chat_door("openai_messages", openai_chat),
    chat_door("anthropic_messages", anthropic_chat),
    chat_door("pydantic_ai", pydantic_ai_chat),
    chat_door("langchain", langchain_chat),
    Door(HOOKS, fill_hooks, ask_hooks),
    Door("mcp", fill_mcp, ask_mcp),
    Door("http", fill_http, ask_http),
    Door("cli", fill_cli, ask_cli),
)


# --- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """How many questions have all their evidence, and medians of the tokens that are added to a prompt."""

    evidence: int
    with_passages: int
    tokens: float
    unrelated_tokens: float
    unrelated_silent: int


def measure(ask: Ask, conversation: Conversation) -> Result:
    evidence = with_passages = 0
    sent = []
    for question in conversation.questions:
        prompt = RenderedPrompt(ask(question.text))
        sent.append(tokens.count(prompt.text))
        pieces = conversation.evidence(question)
        evidence += all(piece.is_present_in(prompt) for piece in pieces if isinstance(piece, EvidenceText))
        with_passages += all(piece.is_present_in(prompt) for piece in pieces if isinstance(piece, PassageEvidence))
    unrelated = [tokens.count(ask(prompt)) for prompt in conversation.unrelated]
    return Result(evidence, with_passages, median(sent), median(unrelated), unrelated.count(0))


def measure_door(door: Door, conversation: Conversation) -> Result:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        door.fill(folder, conversation)
        with door.ask(folder) as ask:
            return measure(ask, conversation)


def measure_profiles(conversation: Conversation) -> dict[str, Result]:
    """Measure every profile through the library, without those that need records of a kind that no conversation leaves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill_library(folder, conversation)
        found = {}
        for profile in profiles.names():
            with ask_library(folder, session=NEW_SESSION, profile=profile) as ask, suppress(InputError):
                found[profile] = measure(ask, conversation)
        return found


def measure_fts5(conversation: Conversation) -> Result:
    documents = [Document(id=message.id, text=message.text) for message in conversation.messages]
    ranking = DocumentRanking(Dataset([], documents), build_fts5_index)
    return measure(lambda prompt: ranking.render(Case(prompt, prompt, ()), BUDGET).text, conversation)


def run() -> dict:
    conversation = read_conversation()
    chosen = [name for name in os.environ.get("FOVEATE_BENCH_DOORS", "").split(",") if name]
    of_profiles = measure_profiles(conversation)
    best = max(of_profiles, key=lambda name: (of_profiles[name].evidence, -of_profiles[name].tokens))
    print(f"{len(conversation.questions)} questions, {len(conversation.unrelated)} unrelated prompts, budget {BUDGET}")
    print(f"{'':24}{'evidence':>10}{'of best':>10}{'passages':>10}{'tokens':>10}{'unrelated':>11}{'silent':>8}")
    rows: dict[str, Result] = {}

    def add(name: str, result: Result) -> None:
        rows[name] = result
        print(_row(name, result, of_profiles[best]), flush=True)

    add(f"best profile, {best}", of_profiles[best])
    add("fts5", measure_fts5(conversation))
    doors = [door for door in DOORS if not chosen or door.name in chosen]
    for door in doors:
        add(door.name, measure_door(door, conversation))
    missed = [line for door in doors for line in _missed(door.name, rows[door.name], of_profiles[best], conversation)]
    return {
        "budget": BUDGET,
        "questions": len(conversation.questions),
        "unrelated prompts": len(conversation.unrelated),
        "best profile": best,
        "profiles": {name: _figures(result, of_profiles[best]) for name, result in of_profiles.items()},
        "doors": {name: _figures(result, of_profiles[best]) for name, result in rows.items()},
        "missed": missed,
    }


def share_of_best(result: Result, best: Result) -> float:
    return result.evidence / best.evidence if best.evidence else 1.0


def _row(name: str, result: Result, best: Result) -> str:
    columns = f"{result.evidence:>10}{share_of_best(result, best):>10.0%}{result.with_passages:>10}{result.tokens:>10,.0f}"
    return f"{name:24}{columns}{result.unrelated_tokens:>11,.0f}{result.unrelated_silent:>8}"


def _figures(result: Result, best: Result) -> dict[str, float]:
    return {
        "evidence": result.evidence,
        "share of best": round(share_of_best(result, best), 3),
        "evidence with passages": result.with_passages,
        "tokens": result.tokens,
        "unrelated tokens": result.unrelated_tokens,
        "unrelated silent": result.unrelated_silent,
    }


def _missed(name: str, result: Result, best: Result, conversation: Conversation) -> Iterator[str]:
    if share_of_best(result, best) < MIN_SHARE_OF_BEST:
        yield f"{name} finds {result.evidence}, below {MIN_SHARE_OF_BEST:.0%} of the best profile's {best.evidence}"
    silent = result.unrelated_silent / len(conversation.unrelated)
    if name == HOOKS and silent < MIN_SILENT_SHARE:
        yield f"{name} are silent for {silent:.0%} of the unrelated prompts, not {MIN_SILENT_SHARE:.0%}"
    if name == LIBRARY and result.unrelated_tokens > MAX_UNRELATED_TOKENS:
        yield f"{name} sends {result.unrelated_tokens:.0f} tokens for unrelated prompts, more than {MAX_UNRELATED_TOKENS}"
