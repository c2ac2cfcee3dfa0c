"""Measures the cost of a hook: CPU time of `foveate-hook` above that of bare Python, with and without a service.

A server of the standard library stands for the service and returns a context of the usual size, so that only the hook is
measured. The minimum of several runs counts: it is the least disturbed one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

from bench.corpus import docs, queries
from bench.speed import fill

RECORDS = int(os.environ.get("FOVEATE_BENCH_RECORDS", "10000"))
RUN_COUNT = 9
MAX_MS_WITH_SERVICE, MAX_MS_ALONE = 60.0, 450.0
"""CPU time above that of bare Python."""

HOOK = [sys.executable, "-m", "foveate.integrations.hooks.program", "claude"]


class FakeService(BaseHTTPRequestHandler):
    """Answers every hook with a context of 9,000 characters."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        output = {"hookEventName": "UserPromptSubmit", "additionalContext": "known " * 1500}
        body = json.dumps({"hookSpecificOutput": output}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def cpu(command: list[str], event: bytes = b"", runs: int = RUN_COUNT) -> float:
    """Return the minimum CPU time of a child process in milliseconds."""
    least = float("inf")
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, input=event, stdout=subprocess.PIPE, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least * 1000


def run() -> dict:
    corpus = list(dict.fromkeys(islice(docs(), 2 * RECORDS)))[:RECORDS]
    questions = iter(queries(corpus, 2))
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), corpus)

        def event(prompt: str) -> bytes:
            fields = {"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "cwd": folder, "prompt": prompt}
            return json.dumps(fields).encode()

        bare = cpu([sys.executable, "-c", "pass"])
        cold = cpu(HOOK, event(next(questions)), 5) - bare
        server = ThreadingHTTPServer(("127.0.0.1", 0), FakeService)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        service = {"url": f"http://127.0.0.1:{server.server_port}", "pid": os.getpid()}
        file = Path(folder) / ".foveate" / "service.json"
        file.write_text(json.dumps(service), "utf-8")
        file.chmod(0o600)
        warm = cpu(HOOK, event(next(questions))) - bare
        server.shutdown()
    out = {
        "records": len(corpus),
        "python ms": round(bare, 1),
        "hook with a service, above python ms": round(warm, 1),
        "hook without one, above python ms": round(cold, 1),
        "targets ms": [MAX_MS_WITH_SERVICE, MAX_MS_ALONE],
    }
    limits = (("with a service", warm, MAX_MS_WITH_SERVICE), ("without one", cold, MAX_MS_ALONE))
    out["missed"] = [f"{name}: {cost:.0f} ms, not below {limit:.0f}" for name, cost, limit in limits if cost >= limit]
    print(out)
    return out
