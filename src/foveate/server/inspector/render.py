"""The templates, and the filters that they use besides Jinja's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

import jinja2

from foveate import __version__, clock
from foveate.records.fence import is_quoted
from foveate.records.render import display_name
from foveate.server.http.access import UI
from foveate.server.inspector import charts
from foveate.server.inspector.page import SCOPE_PARAMS
from foveate.store.scoped import PERSONAL_PROJECT
from foveate.text.format import one_line, truncate
from foveate.types import Record

STATIC = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}

THEMES = ("light", "dark")

ONE_TIME_PARAMS = ("done", "seal")
"""The message of a form that was just sent, and its signature. No link carries them on."""


@lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("foveate.server.inspector"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,  # a missing value is a mistake, not an empty text
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        each.__name__: each for each in (number, score, shortfall, percent, iso, time, day, shorten, filesize, display_name)
    }
    environment.tests |= {"quoted": is_quoted, "personal": _is_personal}
    environment.globals |= {"draw": charts, "version": __version__, "static": static_path}
    return environment


def render_template(name: str, variables: Mapping[str, Any]) -> str:
    return templates().get_template(f"{name}.html").render(variables)


class Links:
    """URLs of pages that carry on whose state is shown."""

    def __init__(self, page: str, values: list[tuple[str, str]]) -> None:
        self.page = page
        self.values = [(name, value) for name, value in values if name not in ONE_TIME_PARAMS]
        self.scope = [(name, value) for name, value in values if name in SCOPE_PARAMS]

    def to(self, page: str, **values: object) -> str:
        """Return the URL of another page."""
        return _url(page, [*_texts(values), *self.scope])

    def this_page(self, **values: object) -> str:
        """Return the URL of this page with other values. None removes a value."""
        return _url(self.page, [*((name, value) for name, value in self.values if name not in values), *_texts(values)])


def _texts(values: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in values.items() if value not in (None, "")]


def _url(page: str, values: list[tuple[str, str]]) -> str:
    return f"{UI}/{page}" + (f"?{urlencode(values)}" if values else "")


@lru_cache(maxsize=8)
def static_file(name: str) -> bytes:
    return files("foveate.server.inspector").joinpath("static", name).read_bytes()


@lru_cache(maxsize=8)
def static_path(name: str) -> str:
    """Return the path of a static file with a hash of its content, so that browsers may cache it forever."""
    # The hash is a part of the address, so a new version of the file is fetched although browsers keep the old one.
    return f"{UI}/static/{name}?v={blake2b(static_file(name), digest_size=6).hexdigest()}"


def number(value: Any) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def score(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"


def shortfall(value: Any) -> str:
    """Format how much a score was too low. The smallest shortfall must not read as zero."""
    return "–" if not value else "+<0.001" if value < 0.0005 else f"+{value:.3f}"


def percent(value: Any) -> str:
    return "–" if value is None else f"{value:.0%}"


def filesize(value: int) -> str:
    return f"{value / 2**20:,.1f} MB" if value >= 2**20 else f"{value / 2**10:,.1f} kB"


def iso(value: int | str) -> str:
    """Return a time (milliseconds, or already ISO 8601) in ISO 8601."""
    return value if isinstance(value, str) else clock.iso(value)


def time(value: int | str) -> str:
    """Format a time in UTC, to the second."""
    return iso(value)[:19].replace("T", " ")


def day(value: int | str) -> str:
    return iso(value)[:10]


def _is_personal(record: Record) -> bool:
    return record.scope.project == PERSONAL_PROJECT


def shorten(text: Any, max_chars: int = 120) -> str:
    """Return the beginning of a text, on one line."""
    return truncate(one_line(text or ""), max_chars)
