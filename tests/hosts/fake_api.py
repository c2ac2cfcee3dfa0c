"""A language model's API on the loopback, which says what a test tells it to and keeps what it received.

It speaks the two streams that the hosts use: Anthropic's messages and OpenAI's responses. A turn of the script is either a
text, or a `Use` of a tool; when the script is at its end, the model answers `Done.` What is no part of the conversation (a
title, a summary, a token count) is answered too, and takes no turn.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

END = "Done."


@dataclass(frozen=True)
class Use:
    """The model calls a tool whose name ends so, whatever the host puts before it."""

    tool: str
    input: Mapping[str, Any]


Turn = str | Use


@dataclass
class FakeAPI:
    """What the model will say, and the requests that it got."""

    url: str
    script: list[Turn] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The requests of the conversation itself: those that offer our tools."""
        return [body for body in self.requests if tools_in(body)]

    def next(self, body: dict[str, Any]) -> Turn:
        with self.lock:
            self.requests.append(body)
            return self.script.pop(0) if self.script and tools_in(body) else END


def tools_in(body: Mapping[str, Any]) -> list[str]:
    """The names of the tools that a request offers; a namespace's tools under its own name."""
    names = []
    for tool in body.get("tools") or ():
        name = tool.get("name") or tool.get("function", {}).get("name", "")
        names += [f"{name}__{part['name']}" for part in tool["tools"]] if "tools" in tool else [name]
    return names


def results_in(body: Mapping[str, Any]) -> list[str]:
    """What tools answered, as the model reads it, in either API."""
    if "input" in body:
        return [_text(item["output"]) for item in body["input"] if item["type"] == "function_call_output"]
    parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
    return [_text(part["content"]) for part in parts if part["type"] == "tool_result"]


def messages_in(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation as a provider's cache sees it: in one form, and without the marks of where to cut it."""
    return [_plain(message) for message in body.get("input") or body["messages"]]


def texts_in(body: Mapping[str, Any]) -> str:
    """All that is said in a conversation, in its order."""
    return "\n".join(_text(message.get("content") or "") for message in messages_in(body))


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    parts = [{name: part[name] for name in part if name != "cache_control"} for part in content or ()]
    return {**message, "content": parts}


def _text(content: Any) -> str:
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "\n".join(str(part.get("text", part)) for part in content)
    return str(content)


@contextmanager
def serving() -> Iterator[FakeAPI]:
    """The API on a port of its own."""
    api = FakeAPI("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            path = self.path.partition("?")[0]
            if path.endswith("/count_tokens"):
                self._send("application/json", json.dumps({"input_tokens": 1}))
            elif path.endswith("/messages"):
                turn = api.next(body)
                if body.get("stream"):
                    self._send("text/event-stream", _events(_anthropic(turn, body)))
                else:
                    self._send("application/json", json.dumps(_message(turn, body)))
            elif path.endswith("/responses"):
                self._send("text/event-stream", _events(_openai(api.next(body), body)))
            else:
                self._send("application/json", "{}")

        def do_GET(self) -> None:
            self._send("application/json", '{"data": [], "models": []}')

        do_HEAD = do_GET

        def _send(self, sort: str, text: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("content-type", sort)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()


def _events(events: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _named(use: Use, body: Mapping[str, Any]) -> str:
    """The tool's name as the host offers it."""
    return next((name for name in tools_in(body) if name.endswith(use.tool)), use.tool)


def _message(turn: Turn, body: Mapping[str, Any]) -> dict[str, Any]:
    """A whole message of the Anthropic API."""
    block: dict[str, Any] = {"type": "text", "text": turn}
    if isinstance(turn, Use):
        block = {"type": "tool_use", "id": "toolu_1", "name": _named(turn, body), "input": dict(turn.input)}
    return {
        "id": f"msg_{len(body['messages'])}", "type": "message", "role": "assistant", "content": [block],
        "model": body.get("model", "fake"),
        "stop_reason": "tool_use" if isinstance(turn, Use) else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _anthropic(turn: Turn, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = _message(turn, body)
    (block,) = message["content"]
    if isinstance(turn, Use):
        block = {**block, "id": f"toolu_{len(body['messages'])}", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(dict(turn.input))}
    else:
        block, delta = {**block, "text": ""}, {"type": "text_delta", "text": turn}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def _openai(turn: Turn, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    number = len(body.get("input", ()))
    if isinstance(turn, Use):
        name = _named(turn, body)
        space, _, inner = name.rpartition("__")
        named = {"namespace": space, "name": inner} if _is_namespaced(space, body) else {"name": name}
        item = {
            "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", **named,
            "arguments": json.dumps(dict(turn.input)), "status": "completed",
        }  # fmt: skip
    else:
        item = {
            "type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": turn, "annotations": []}],
        }  # fmt: skip
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    done = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**done, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def _is_namespaced(space: str, body: Mapping[str, Any]) -> bool:
    return any("tools" in tool and tool.get("name") == space for tool in body.get("tools") or ())
