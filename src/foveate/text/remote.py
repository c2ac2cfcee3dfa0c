"""JSON over HTTP, for models behind an endpoint. The standard library is enough: no package is needed for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from foveate.errors import InputError, SourceError

FIRST_RETRY_S, MAX_RETRY_S = 0.5, 4.0
"""The wait before a request is sent again doubles from the first, unless the endpoint asks for another one."""

RETRYABLE_STATUS = frozenset({429, 500, 502, 503, 504})
MAX_ERROR_DETAIL_CHARS = 200
"""As much of an endpoint's own words as reads well in one line of a receipt."""


@dataclass(frozen=True)
class JsonEndpoint:
    """An HTTP endpoint that takes a JSON document and returns one."""

    name: str
    """How messages call it: `The embedding endpoint`."""
    url: str
    model: str
    key: str
    key_name: str
    """The setting that holds the key, so that messages can name it."""
    headers: Mapping[str, str]
    timeout_s: float
    max_attempts: int = 1
    sleep: Callable[[float], None] = time.sleep

    def post(self, body: Mapping[str, Any], hint: str = "") -> Any:
        """Return the endpoint's document. Raise `SourceError` with the reason, and `hint` after it, if there is none."""
        for attempt in range(1, self.max_attempts + 1):
            try:
                return self._post_once(body)
            except HTTPError as error:
                with error:
                    if error.code not in RETRYABLE_STATUS or attempt == self.max_attempts:
                        raise SourceError(self._refusal(error)) from None
                    delay = _retry_delay(attempt, error.headers.get("Retry-After", ""))
            except (OSError, HTTPException, ValueError) as error:
                raise SourceError(f"{self.name} {self.url!r} gave no answer: {error}.{hint}") from None
            self.sleep(delay)
        raise AssertionError("the last attempt returns or raises")

    def _post_once(self, body: Mapping[str, Any]) -> Any:
        request = Request(self.url, json.dumps(body).encode(), {"Content-Type": "application/json", **self.headers})
        with self._opener.open(request, timeout=self.timeout_s) as response:
            return json.load(response)

    @cached_property
    def _opener(self) -> OpenerDirector:
        is_local = urlsplit(self.url).hostname in ("127.0.0.1", "::1", "localhost")
        return build_opener(_NoRedirects, ProxyHandler({}) if is_local else ProxyHandler())

    def _refusal(self, error: HTTPError) -> str:
        detail = " ".join(error.read(MAX_ERROR_DETAIL_CHARS).decode("utf-8", "replace").split())
        detail = detail.replace(self.key, "***") if self.key else detail
        hint = f" Set {self.key_name} to a key that may use it." if error.code in (401, 403) else ""
        return f"{self.name} {self.url!r} answered {error.code} for model {self.model!r}: {detail}.{hint}"


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def check_endpoint(url: str, key: str, url_name: str, key_name: str) -> None:
    """Raise `InputError` for a value that is no web address or no key. Both are called by the names of their settings."""
    problems = []
    if urlsplit(url).scheme not in ("http", "https"):
        problems.append(f"{url_name} must be a web address: `http://` or `https://`, a host and a path.")
    if urlsplit(url).username is not None:
        problems.append(f"{url_name} must not contain a user name or password. Put the key into {key_name}.")
    if not (key.isascii() and key.isprintable()):
        problems.append(f"{key_name} contains characters that keys do not have. Was it copied completely?")
    if problems:
        raise InputError(problems)


def _retry_delay(attempt: int, retry_after: str) -> float:
    requested = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else FIRST_RETRY_S * 2 ** (attempt - 1)
    return min(requested, MAX_RETRY_S)
