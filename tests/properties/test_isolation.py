"""Project, user and agent are walls: nothing of another's shows up anywhere, whatever is asked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import NotFound, Scope, testing
from foveate.engine.engine import view_of
from foveate.receipts.codec import context_to_json, to_json
from property_settings import examples
from records import add_record
from worlds import counting_ids, open_engine

projects = st.sampled_from(("main", "other"))
people = st.sampled_from((None, "ana", "bob"))
agents = st.sampled_from((None, "coder", "reviewer"))
sessions = st.sampled_from((None, "s1", "s2"))
scopes = st.builds(Scope, project=projects, user=people, agent=agents, session=sessions)
KINDS = ("fact", "decision", "instruction", "censor", "identity", "episode", "event", "scratch", "entity")
rows = st.lists(st.tuples(scopes, st.sampled_from(KINDS), st.booleans()), min_size=1, max_size=15)


def may_see(reader: Scope, owner: Scope, kind: str) -> bool:
    """A record is visible when each level that it sets equals the reader's; sessions are walls for private kinds only."""
    if owner.project != reader.project:
        return False
    if owner.user not in (None, reader.user) or owner.agent not in (None, reader.agent):
        return False
    return kind != "scratch" or owner.session in (None, reader.session)


@examples(250)
@given(rows, scopes, st.sampled_from(("default", "chat", "subtask", "assistant")))
def test_no_read_crosses_a_scope(records: list[tuple[Scope, str, bool]], reader: Scope, profile: str) -> None:
    with open_engine() as engine:
        seen, foreign = {}, {}
        for n, (scope, kind, pinned) in enumerate(records):
            text = f"The deploy secret{chr(97 + n)}word of the archive is known"
            id = add_record(engine, kind, text, scope=scope, pinned=pinned).record.id
            (seen if may_see(reader, scope, kind) else foreign)[id] = f"secret{chr(97 + n)}word"
        context = view_of(engine, reader).context(
            "What is known of the deploy of the archive?", profile=profile, budget=6000
        )
        document = json.dumps([context_to_json(context), dict(to_json(engine.receipts.get(context)))], default=list)
        for id, word in foreign.items():
            assert word not in document
            assert f'"{id}"' not in document
            with pytest.raises(NotFound):
                engine.why(id, context)
        shown = {item.id for item in context.items if item.candidate.source != "frame"}
        left = {omission.id for omission in context.left_out}
        assert shown | left <= set(seen)
        rules = {id for id in seen if id.split("_")[0] in ("instruction", "censor", "identity")}
        assert rules <= shown


def test_the_latest_receipt_is_ones_own(tmp_path: object) -> None:
    import foveate

    def opened(user: str) -> foveate.Engine:
        return testing.engine(str(tmp_path), user=user, ids=counting_ids(), personal=False)

    with opened("ana") as ana:
        ana.add("fact", "Ana's plan for the archive", user="ana")
        ana.context("What is the plan for the archive?")
    with opened("bob") as bob, pytest.raises(NotFound, match="No context was computed yet"):
        bob.receipts.get()
    with opened("ana") as ana:
        assert ana.receipts.get().request.scope.user == "ana"


@examples(40)
@given(rows, scopes)
def test_search_and_get_keep_to_the_scope_that_they_were_opened_for(
    records: list[tuple[Scope, str, bool]], reader: Scope
) -> None:
    with open_engine() as engine:
        ids = {}
        for n, (scope, kind, _) in enumerate(records):
            added = add_record(
                engine, kind, f"The deploy secret{chr(97 + n)}word of the archive is known", scope=scope
            ).record
            ids[added.id] = may_see(reader, scope, kind)
        with engine.store.data.reader(reader) as view:
            assert set(view.get(list(ids))) == {id for id, visible in ids.items() if visible}
            assert {record.id for record in view.records()} == {id for id, visible in ids.items() if visible}
