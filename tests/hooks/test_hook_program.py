"""`foveate-hook` as hosts call it: a process with an event on stdin. It answers or says nothing, and always exits with 0."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate.integrations.hooks import program
from foveate.integrations.hooks.hosts import handle

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "foveate.integrations.hooks.program"]
HEAVY = {"click", "apsw", "http.client", "urllib.request", "dataclasses", "pathlib", "logging", "foveate.engine"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    with foveate.open(folder) as engine:
        engine.add("instruction", "Run make test before a commit")
        engine.add("fact", "Redis runs on port 6380", subject="redis", attribute="port")
    return folder


def private(path: Path, text: str) -> None:
    """As `foveate serve` writes it: nobody else could have."""
    path.write_text(text, "utf-8")
    path.chmod(0o600)


def event(cwd: Any, prompt: str = "Which port has Redis?", **more: Any) -> bytes:
    cwd = str(cwd) if isinstance(cwd, Path) else cwd
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "cwd": cwd, "prompt": prompt, **more}
    return json.dumps(fields).encode()


def call(given: bytes, *args: str, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *(args or ("claude",))],
        input=given,
        capture_output=True,
        cwd=cwd or ROOT.parent,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **options},
    )


def answered(done: subprocess.CompletedProcess[bytes]) -> str:
    assert done.returncode == 0
    found = json.loads(done.stdout)["hookSpecificOutput"]
    assert found["hookEventName"] == "UserPromptSubmit"
    return str(found["additionalContext"])


@contextmanager
def service(folder: Path, answer: Any = None, *, status: int = 200, stall: bool = False) -> Iterator[list[dict[str, Any]]]:
    """A real server that answers hooks: with the engine, or with what it is told to."""
    heard: list[dict[str, Any]] = []
    done = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append({"path": self.path, "host": self.headers["Host"], "token": self.headers["Authorization"]})
            if stall:
                done.wait()
            body = answer if isinstance(answer, bytes) else json.dumps(answer or self.computed(raw)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def computed(self, raw: bytes) -> Any:
            with foveate.open(folder) as engine:
                return handle(engine, self.path.rpartition("/")[2], json.loads(raw))

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    place = {"url": f"http://127.0.0.1:{server.server_port}", "pid": os.getpid(), "token": "t-1"}
    private(folder / ".foveate" / "service.json", json.dumps(place))
    try:
        yield heard
    finally:
        done.set()
        server.shutdown()
        server.server_close()
        thread.join()


def log_of(project: Path) -> str:
    path = project / ".foveate" / program.LOG_FILE
    return path.read_text("utf-8") if path.exists() else ""


# --- who answers ---------------------------------------------------------------------------------------------------


def test_without_a_service_it_answers_by_itself(project: Path) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    assert "6380" in answered(call(event(below)))
    again = call(event(below, "Which port was that?"))
    assert (again.returncode, again.stdout, again.stderr) == (0, b"", b"")
    assert log_of(project) == ""
    assert not (project / ".foveate" / "code.db").exists()


def test_the_service_answers_and_is_told_whose_event_it_is(project: Path) -> None:
    with service(project) as heard:
        assert "6380" in answered(call(event(project)))
        assert call(event(project), "gemini").returncode == 0
    assert [each["path"] for each in heard] == ["/v1/hooks/claude", "/v1/hooks/gemini"]
    assert heard[0]["host"].startswith("127.0.0.1:")
    assert heard[0]["token"] == "Bearer t-1"


@pytest.mark.parametrize(
    ("answer", "status"), [(b"", 200), (b"not json", 200), ({"error": 1}, 500), (b"{}", 404), (b"x" * 300_000, 200)]
)
def test_a_service_that_answers_nonsense_is_no_error(project: Path, answer: Any, status: int) -> None:
    with service(project, answer, status=status):
        done = call(event(project))
    assert done.returncode == 0
    assert log_of(project)
    assert not done.stdout or "6380" in answered(done)


@pytest.mark.parametrize(
    "text",
    [
        '{"url": "http://127.0.0.1:1", "pid": 1}',
        '{"url": "http://[::1]:1"}',
        '{"url": "http://192.0.2.1:80"}',
        '{"url": "https://127.0.0.1:1"}',
        '{"url": "http://127.0.0.1:99999"}',
        '{"url": 3}',
        "[]",
        "{",
        "",
    ],
)
def test_a_service_that_is_gone_or_elsewhere_is_not_waited_for(project: Path, text: str) -> None:
    private(project / ".foveate" / "service.json", text)
    assert "6380" in answered(call(event(project)))


def test_with_a_service_only_little_is_imported(project: Path) -> None:
    code = (
        "import os, sys; os._exit = lambda code: print(*sys.modules, file=sys.stderr);"
        "sys.argv = ['foveate-hook', 'claude']; from foveate.integrations.hooks import program; program.main()"
    )
    with service(project, {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "known"}}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=event(project),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
    loaded = set(done.stderr.decode().split())
    assert "known" in done.stdout.decode()
    assert "foveate.integrations.hooks.program" in loaded
    assert HEAVY & loaded == set()
    ours = {name for name in loaded if name.startswith("foveate")}
    assert ours == {
        "foveate",
        "foveate.integrations",
        "foveate.integrations.hooks",
        "foveate.integrations.hooks.program",
        "foveate.project",
        "foveate.project.locate",
        "foveate.project.tracked_by_git",
        "foveate.project.trusted_files",
    }


# --- where ---------------------------------------------------------------------------------------------------------


def test_a_worktree_uses_the_store_of_the_main_one(project: Path, tmp_path: Path) -> None:
    def git(*args: str, cwd: Path) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *args], cwd=cwd, check=True, capture_output=True)

    git("init", "-q", cwd=project)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=project)
    git("worktree", "add", "-q", str(tmp_path / "beside"), cwd=project)
    assert "6380" in answered(call(event(tmp_path / "beside")))


@pytest.mark.parametrize("cwd", [None, "relative", 3])
def test_the_place_is_found_in_other_fields_or_is_where_it_runs(project: Path, cwd: Any) -> None:
    assert "6380" in answered(call(event(cwd), cwd=project))
    assert "6380" in answered(call(event(cwd, workspace_roots=[str(project)], session_id="s-2")))


def test_without_a_store_it_says_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    done = call(event(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


# --- it never fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"{" * 100_000, b'{"cwd": "\\u0000"}', b" " * 4_100_000]
)
def test_what_is_no_event_exits_with_0_and_says_nothing(project: Path, given: bytes) -> None:
    done = call(given, cwd=project)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("args", [("nobody",), ("claude", "more"), ("--help",)])
def test_wrong_arguments_exit_with_0(project: Path, args: tuple[str, ...]) -> None:
    assert call(event(project), *args).returncode == 0


def test_a_damaged_store_is_told_in_the_log(project: Path) -> None:
    for path in (project / ".foveate").glob("state.db*"):
        path.write_bytes(b"no database " * 500)
    done = call(event(project))
    assert (done.returncode, done.stdout) == (0, b"")
    assert "Damaged" in log_of(project)


def test_broken_settings_are_told_in_the_log_which_stays_small(project: Path) -> None:
    (project / ".foveate" / "config.toml").write_text("budgets = 3\n", "utf-8")
    log = project / ".foveate" / program.LOG_FILE
    log.write_text("old\n" * program.MAX_LOG_BYTES, "utf-8")
    done = call(event(project))
    assert (done.returncode, done.stdout) == (0, b"")
    assert "config.toml has no setting 'budgets'" in log_of(project)
    assert log.stat().st_size < program.MAX_LOG_BYTES


def test_a_closed_stdout_is_no_error(project: Path) -> None:
    script = f"{' '.join(COMMAND)} claude >&-"
    done = subprocess.run(
        ["sh", "-c", script],
        input=event(project),
        check=False,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_signal_to_end_exits_with_0(project: Path) -> None:
    with service(project, stall=True) as heard:
        process = subprocess.Popen(
            [*COMMAND, "claude"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        assert process.stdin is not None
        process.stdin.write(event(project))
        process.stdin.close()
        while not heard:
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""
        process.stdout.close()


def test_two_hooks_at_once_tell_each_thing_once(project: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    running = [
        subprocess.Popen([*COMMAND, "claude"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) for _ in range(3)
    ]
    said = [process.communicate(event(project))[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert sum(b"6380" in each for each in said) == 1
    assert log_of(project) == ""


# --- repositories that bring more than code ------------------------------------------------------------------------


def test_a_store_that_came_with_the_repository_says_nothing(project: Path) -> None:
    for words in (["init", "-q"], ["add", "-f", ".foveate/state.db"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    done = call(event(project))
    assert (done.returncode, done.stdout) == (0, b"")
    assert "tracked by git" in log_of(project)


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_only_a_private_service_file_is_believed(project: Path, mode: int) -> None:
    with service(project, {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "theirs"}}):
        (project / ".foveate" / "service.json").chmod(mode)
        assert ("theirs" in answered(call(event(project)))) is (mode == 0o600)


def test_a_host_is_told_nothing_but_a_context(project: Path) -> None:
    told = {"hookEventName": "UserPromptSubmit", "additionalContext": "x", "updatedInput": {"command": "rm"}}
    with service(project, {"hookSpecificOutput": told, "decision": "block", "continue": True}):
        done = call(event(project))
    context = {"hookEventName": "UserPromptSubmit", "additionalContext": "x"}
    assert json.loads(done.stdout) == {"continue": True, "hookSpecificOutput": context}


def test_the_log_is_never_written_through_a_link(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "rc"
    target.write_text("mine\n", "utf-8")
    (project / ".foveate" / program.LOG_FILE).symlink_to(target)
    private(project / ".foveate" / "service.json", '{"url": "ftp://x"}')
    assert call(event(project)).returncode == 0
    assert target.read_text("utf-8") == "mine\n"


def test_a_git_file_that_names_another_repository_opens_nothing(project: Path, tmp_path: Path) -> None:
    spoof = tmp_path / "spoof"
    spoof.mkdir()
    (spoof / ".git").write_text(f"gitdir: {project}/.git/worktrees/x\n", "utf-8")
    done = call(event(spoof))
    assert (done.returncode, done.stdout) == (0, b"")
