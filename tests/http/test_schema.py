"""Every endpoint of the OpenAPI document, under whatever a caller may send: no 5xx, and only what the document promises."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

import foveate
from foveate.server.http import Settings, create_app
from foveate.server.tokens import SCOPES, Tokens

BASE = "http://127.0.0.1"
EXAMPLES = 5
"""For each endpoint: all of them together take less than a minute."""

UNTRIED = "^/v1/events$"
"""A stream has no end."""

UNCHECKED = [positive_data_acceptance, negative_data_rejection]
"""A sound form may name what is not there, and a header or a parameter that nobody knows is no harm."""

schemathesis.serializer("application/x-ndjson")(lambda context, value: str(value).encode("utf-8", "replace"))

folder = TemporaryDirectory()
file = Path(folder.name) / "tokens.json"
_, SECRET = Tokens(file).create("test", SCOPES, "main")
engine = foveate.open(":memory:")
for kind, text in (
    ("fact", "Redis runs on port 6379"),
    ("censor", "Never drop the database"),
    ("event", "The build failed"),
):
    engine.add(kind, text)
app = create_app(engine, settings=Settings(require_token=True, tokens=file))
schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "127.0.0.1"}).exclude(path_regex=UNTRIED)


@schema.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_nothing_that_is_sent_breaks_an_endpoint(case: schemathesis.Case) -> None:
    headers = {"Authorization": f"Bearer {SECRET}"}
    case.call_and_validate(base_url=BASE, headers=headers, excluded_checks=UNCHECKED)
