"""Another version of PostgreSQL, and one with a language's sort order, return the same results in the same order."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import which

import psycopg
import pytest

import stores
from foveate import testing
from foveate.store.copy import copy_store
from foveate.store.postgres.store import PostgresStore
from foveate.store.sql import queries
from foveate.store.sqlite.store import SQLiteStore
from foveate.types import NO_FILTERS
from postgres_server import VERSIONS, LocalServer, server

LANGUAGE = "en_US.UTF-8"
WORDS = ("b", "a", "_b", "A", "B", "ab", "-a", "aB", "z", "Z")
"""Words that every language sorts in another order than that of their bytes."""


@pytest.fixture(scope="module", params=[*sorted(VERSIONS)[:-1], LANGUAGE], ids=str)
def other(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    if request.param != LANGUAGE:
        with server(version=request.param) as running:
            yield running
        return
    if not which("localedef") or not Path("/usr/share/i18n/locales/en_US").exists():
        pytest.skip("no locale en_US, and no localedef to build it")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o755)  # the server may run as another user
        subprocess.run(["localedef", "-i", "en_US", "-f", "UTF-8", str(Path(folder, LANGUAGE))], check=True)
        patch.setenv("LOCPATH", folder)
        with server(locale=LANGUAGE) as running:
            ((ordered,),) = running.execute("select array_agg(x order by x) from unnest(array['B', 'a']) x")
            assert ordered == ["a", "B"]
            yield running


def test_store_works_on_another_server_version_or_locale(other: LocalServer, tmp_path: Path) -> None:
    stores.fill(tmp_path)
    url = other.database()
    with (
        closing(SQLiteStore(tmp_path / ".foveate" / "state.db")) as file,
        closing(PostgresStore(url)) as same,
    ):
        copy_store(file, same)
        assert stores.answers(same) == stores.answers(file)
        assert same.health().ok
        other.execute("create role ada login")
        same.grant("ada", "shop")
    with psycopg.connect(url.replace("postgres@", "ada@")) as ada:
        assert ada.execute("select name from foveate.projects").fetchall() == [("shop",)]


def test_text_is_sorted_by_its_bytes(other: LocalServer, tmp_path: Path) -> None:
    found = []
    for where in (tmp_path, other.database()):
        with testing.engine(where, project="alpha", code=False) as engine:
            engine.store.import_lines(
                [json.dumps({"kind": "note", "text": f"Note {word}", "id": f"note_{word}"}) for word in WORDS]
            )
            for word in WORDS:
                engine.add("entity", f"Entity {word}", data={"name": f"name {word}"})
                engine.add("event", "Rain", data={"type": "message"}, session=f"s {word}")
                engine.link("note_b", "near", f"note_{word}")
            with engine.store.data.reader() as reader:
                found.append(
                    [
                        reader.links(["note_b"]),
                        reader.sessions(20, NO_FILTERS),
                        [record.id for record in reader.records()],
                    ]
                )
    assert found[0] == found[1]
    assert [link.dst for link in found[0][0]] == [f"note_{word}" for word in sorted(WORDS)]


def test_no_query_sorts_by_a_column_with_a_language_collation(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select column_name from information_schema.columns where table_schema = 'foveate' and data_type = 'text' "
            "and collation_name is distinct from 'C'"
        ).fetchall()
        keys = connection.execute(
            "select c.relname from pg_index x join pg_class c on c.oid = x.indexrelid "
            "join pg_namespace n on n.oid = c.relnamespace "
            "join pg_collation d on d.collname = 'default' and d.oid = any (x.indcollation) where n.nspname = 'foveate'"
        ).fetchall()
    sorted_by_language = {name for (name,) in rows}
    assert sorted_by_language >= {"summary", "tags", "line"}
    assert keys == []
    for name, text in queries.load("postgres").items():
        ordered = " ".join(re.findall(r"(?:order by|min\(|max\()([^)]*?)(?:limit|offset|\)|$)", text, re.DOTALL))
        assert not sorted_by_language & set(re.findall(r"\w+", ordered)), name
