"""A model's API on loopback: notes what it receives and answers from a list, so that the real clients can be used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class Served:
    """`answers` go out one by one, and the last of them again; `requests` are the bodies that came in."""

    answers: list[dict[str, Any]]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serving(*answers: dict[str, Any]) -> Iterator[Served]:
    served = Served(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            served.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            answer = served.answers.pop(0) if len(served.answers) > 1 else served.answers[0]
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
