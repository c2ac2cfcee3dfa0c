"""What a hook costs: CPU time of `foveate-hook` above a bare Python, with a service that answers and without one.

The service is a stand-in of the standard library that gives a context of the usual size, so that only the hook is measured.
The least of some runs counts, which is the least disturbed one.
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
RUNS = 9
WARM, COLD = 60.0, 450.0
"""CPU milliseconds above a bare Python: with a service, and without."""

HOOK = [sys.executable, "-m", "foveate.integrations.hooks.program", "claude"]


class StandIn(BaseHTTPRequestHandler):
    """Answers every hook with a context of 9,000 characters."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        told = {"hookEventName": "UserPromptSubmit", "additionalContext": "known " * 1500}
        body = json.dumps({"hookSpecificOutput": told}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def cpu(command: list[str], event: bytes = b"", runs: int = RUNS) -> float:
    """The least CPU time of a child, in milliseconds."""
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
        server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = {"url": f"http://127.0.0.1:{server.server_port}", "pid": os.getpid()}
        file = Path(folder) / ".foveate" / "service.json"
        file.write_text(json.dumps(place), "utf-8")
        file.chmod(0o600)
        warm = cpu(HOOK, event(next(questions))) - bare
        server.shutdown()
    out = {
        "records": len(corpus),
        "python ms": round(bare, 1),
        "hook with a service, above python ms": round(warm, 1),
        "hook without one, above python ms": round(cold, 1),
        "targets ms": [WARM, COLD],
    }
    limits = (("with a service", warm, WARM), ("without one", cold, COLD))
    out["missed"] = [f"{name}: {cost:.0f} ms, not below {most:.0f}" for name, cost, most in limits if cost >= most]
    print(out)
    return out
