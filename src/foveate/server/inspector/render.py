"""Documents -> HTML: the templates, and the few words that they know beyond Jinja's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

import jinja2

from foveate import __version__
from foveate.server.http.access import UI
from foveate.server.inspector import charts, dag_layout, graph_layout
from foveate.server.inspector.page import SCOPE

HERE = files("foveate.server.inspector")
STATIC = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}

THEMES = ("light", "dark")

SAID = ("done", "seal")
"""What was just done, once: no link carries it on."""


@lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("foveate.server.inspector"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,  # a document that lacks something is a mistake, not a blank
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {each.__name__: each for each in (number, score, lack, percent, when, day, short, kb)}
    made.globals |= {"draw": charts, "layers": dag_layout, "neighbourhood": graph_layout}
    made.globals |= {"version": __version__, "static": static_path}
    return made


def rendered(template: str, given: Mapping[str, Any]) -> str:
    return templates().get_template(f"{template}.html").render(given)


class Links:
    """Addresses of pages, with whose state is looked at carried on."""

    def __init__(self, page: str, values: list[tuple[str, str]]) -> None:
        self.page = page
        self.values = [(name, value) for name, value in values if name not in SAID]
        self._scope = [(name, value) for name, value in values if name in SCOPE]

    def to(self, page: str, **values: Any) -> str:
        """Another page."""
        given = [(name, str(value)) for name, value in values.items() if value not in (None, "")]
        return _address(page, [*given, *self._scope])

    def again(self, form: str = "", **values: Any) -> str:
        """This page with other values, or in another form; None takes a value away."""
        kept = [(name, value) for name, value in self.values if name not in values]
        given = [(name, str(value)) for name, value in values.items() if value not in (None, "")]
        return _address(f"{self.page}{form}", [*kept, *given])

    @property
    def scope(self) -> list[tuple[str, str]]:
        """What a form must carry on."""
        return self._scope


def _address(page: str, values: list[tuple[str, str]]) -> str:
    return f"{UI}/{page}" + (f"?{urlencode(values)}" if values else "")


@lru_cache(maxsize=8)
def static_file(name: str) -> bytes:
    return HERE.joinpath("static", name).read_bytes()


@lru_cache(maxsize=8)
def static_path(name: str) -> str:
    """With a mark of its content: browsers may keep it for good."""
    return f"{UI}/static/{name}?v={blake2b(static_file(name), digest_size=6).hexdigest()}"


def number(value: Any) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def score(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"


def lack(value: Any) -> str:
    """What a score lacked: the least of it is still something."""
    return "–" if not value else "+<0.001" if value < 0.0005 else f"+{value:.3f}"


def percent(value: Any) -> str:
    return "–" if value is None else f"{value:.0%}"


def kb(value: int) -> str:
    return f"{value / 2**20:,.1f} MB" if value >= 2**20 else f"{value / 2**10:,.1f} kB"


def when(value: str | None) -> str:
    """A time as people read it, in UTC; to the second."""
    return str(value or "")[:19].replace("T", " ")


def day(value: str | None) -> str:
    return str(value or "")[:10]


def short(text: Any, most: int = 120) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
