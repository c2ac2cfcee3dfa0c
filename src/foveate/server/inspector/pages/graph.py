"""Graph: the neighbourhood of a record, one or two hops; `neighbourhood.py` draws it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from foveate.errors import NotFound
from foveate.records.render import called
from foveate.server.inspector.page import Action, Asked, Page
from foveate.server.inspector.record_history import row
from foveate.store.protocol import Reader
from foveate.tasks.task import lookup, state_of
from foveate.text import analysis
from foveate.types import NO_FILTERS, Link, Record

MOST = 40
"""Nodes of a drawing, the centre among them: more is a hairball."""
NEAR = 14
"""Neighbours that are shown where what is beyond them is shown, too."""
EACH = 8
"""What is shown beyond one neighbour: a hub must not crowd out what is beyond the others."""
LISTED = 200
"""Links in the table."""
TO_START = 24
"""Entities, and tasks, to start from."""


def neighbourhood(asked: Asked) -> dict[str, Any]:
    """A record, what it is joined to, and how."""
    said, hops = asked.text("id"), asked.number("hops", 1, most=2) or 1
    with asked.engine.reader() as reader:
        if not said:
            return _start(reader)
        centre = _named(reader, said)
        parents, left_out = _reached(reader, centre.id, hops)
        links = [link for link in reader.links(list(parents)) if link.dst in parents]
        records = reader.get(list(parents))
    nodes = _nodes(centre, parents, {id: record for id, record in records.items() if id != centre.id})
    titles = {node["id"]: node["title"] for node in nodes}
    edges = [_edge(link, titles) for link in _heaviest(links) if link.src in titles and link.dst in titles]
    return {
        "subject": f"Graph: {called(centre)[:60]}",
        "centre": {**row(centre), "key": centre.key},
        "hops": hops,
        "nodes": nodes,
        "edges": edges[:LISTED],
        "more_edges": max(0, len(edges) - LISTED),
        "left_out": left_out,
        "start": None,
    }


def _named(reader: Reader, said: str) -> Record:
    """The record of an id or a key, or the entity of a name."""
    found = lookup(reader, said) or next(iter(reader.named([analysis.names(said)]).values()), None)
    if found is None:
        raise NotFound(f"There is no record and no entity {said!r} in this scope. Find it by its words.")
    return found


def _start(reader: Reader) -> dict[str, Any]:
    """Entities that matter most, and tasks that are not done."""
    entities = reader.salient(["entity"], TO_START, NO_FILTERS)
    tasks = [
        task for task in reader.recent(["task"], 10 * TO_START, NO_FILTERS) if state_of(task) not in ("completed", "failed")
    ]
    start = {
        "entities": [{**row(record), "type": str(record.data.get("type", "entity"))} for record in entities],
        "tasks": [{**row(record), "state": state_of(record)} for record in tasks[:TO_START]],
    }
    return {"centre": None, "start": start}


def _reached(reader: Reader, centre: str, hops: int) -> tuple[dict[str, str], int]:
    """Whom the links lead to, each with the node that it was reached from, and how many had no place.

    The heaviest links come first; two queries for each hop, however many nodes it starts from.
    """
    parents: dict[str, str] = {centre: ""}
    left_out: set[str] = set()
    frontier = [centre]
    for hop in range(1, hops + 1):
        links = [*reader.links(frontier), *reader.links(frontier, back=True)]
        most = min(MOST, 1 + NEAR) if hop < hops else MOST
        reached: list[str] = []
        for link in _heaviest(links):
            inside = link.src in frontier
            parent, end = (link.src, link.dst) if inside else (link.dst, link.src)
            if end in parents or parent not in frontier:
                continue
            if len(parents) < most and (hop == 1 or sum(each == parent for each in parents.values()) < EACH):
                parents[end] = parent
                reached.append(end)
            else:
                left_out.add(end)
        frontier = reached
    return parents, len(left_out - parents.keys())


def _heaviest(links: Iterable[Link]) -> list[Link]:
    """Each link once; of equals, in the order of their names."""
    return sorted(set(links), key=lambda link: (-link.weight, link.name, link.src, link.dst))


def _nodes(centre: Record, parents: Mapping[str, str], others: Mapping[str, Record]) -> list[dict[str, Any]]:
    first = {**row(centre), "hop": 0, "parent": ""}
    near = [id for id, parent in parents.items() if parent == centre.id and id in others]
    far = [id for id, parent in parents.items() if parent in near and id in others]
    hop = dict.fromkeys(near, 1) | dict.fromkeys(far, 2)
    return [first, *({**row(others[id]), "hop": hop[id], "parent": parents[id]} for id in (*near, *far))]


def _edge(link: Link, titles: Mapping[str, str]) -> dict[str, Any]:
    return {
        "src": link.src,
        "from": titles[link.src],
        "name": link.name,
        "dst": link.dst,
        "to": titles[link.dst],
        "weight": link.weight,
    }


PAGES: tuple[Page, ...] = (
    Page("graph", "Graph", neighbourhood, hint="How entities, tasks and records hang together, one or two hops."),
)
ACTIONS: tuple[Action, ...] = ()
