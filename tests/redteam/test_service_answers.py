"""Answers of the HTTP service that a browser, or a caller with odd values, cannot turn against it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from foveate.server.http.app import create_app
from foveate.testing import engine


@pytest.fixture
def client() -> Iterator[TestClient]:
    with engine() as memory, TestClient(create_app(memory), base_url="http://127.0.0.1") as made:
        yield made


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/v1/records", "/v1/nothing", "/openapi.json", "/metrics", "/nothing"]
)
def test_no_answer_is_taken_for_another_type(client: TestClient, path: str) -> None:
    assert client.get(path).headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "extra", [{"x": 1}, {"x": {"y": 1}}, {"x": [1]}, 1, [1], {"": ""}, {"text": 1}, [{"text": None}], [[]]]
)
def test_texts_of_a_wrong_type_are_refused(client: TestClient, extra: object) -> None:
    answer = client.post("/v1/contexts", json={"query": "tea", "extra": extra})
    assert answer.status_code == 422, answer.text
