"""Run a source in a thread of its own, and wait for an async one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def in_thread(job: Callable[[], T], name: str) -> Future[T]:
    """Run a job in a thread that does not keep the process alive."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(job())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name=f"foveate {name}", daemon=True).start()
    return answer


def await_result(answer: Awaitable[Any]) -> Any:
    """Return the result of an awaitable, in a thread of its own if the caller is inside an event loop."""
    import asyncio  # only async sources need it

    async def result() -> Any:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(result())
    return in_thread(lambda: asyncio.run(result()), "event loop").result()
