"""`token`: who may use the service of a project."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from foveate.cli.call import Call, Verb, VerbGroup, pass_call, say
from foveate.errors import InputError
from foveate.server.tokens import SCOPES, Token, Tokens


def _tokens(call: Call) -> Tokens:
    from foveate.project.project import create as make_folder

    place = call.place()
    if not place.has_store:
        raise InputError("there is no store here. Create one with `foveate init`.")
    make_folder(place)  # tokens are kept where the service runs
    return Tokens(place.tokens_file)


def _until(text: str) -> int:
    """A time, or how long from now."""
    from foveate.clock import is_age, now, parse_time

    current = now()
    time = parse_time(text, "--expires", current=current)
    return 2 * current - time if is_age(text) else time


@click.group(cls=VerbGroup)
def token() -> None:
    """Make, list and revoke tokens for the service."""


@token.command("create", cls=Verb)
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help=f"What it allows: {', '.join(SCOPES)}. Repeatable.")
@click.option("--for-user", "user", metavar="NAME", help="Speaks for this user alone; else for any that a request names.")
@click.option("--for-agent", "agent", metavar="NAME", help="Speaks for this agent alone.")
@click.option("--expires", type=_until, metavar="TIME", help="Ends then: 2027-01-31, or 30d from now.")
@pass_call
def create(call: Call, name: str, scopes: tuple[str, ...], **options: Any) -> None:
    """Make a token; prints it, this once.

    `foveate token create ci --scope context:read --expires 90d`. Without --scope, all but admin. It is for one project, this
    one or that of --project: its holder sees no other. The file keeps its hash.
    """
    wanted = scopes or [scope for scope in SCOPES if scope != "admin"]
    made, secret = _tokens(call).create(name, wanted, call.project_name(), **options)
    if call.as_json:
        call.print_json({"token": secret, **_public(made)})
        return
    click.echo(secret)
    say(f"token {made.id} for {made.name!r}: {', '.join(made.scopes)}. It is not shown again.")


@token.command("list", cls=Verb)
@pass_call
def list_(call: Call) -> None:
    """List the tokens, without their secrets."""
    from foveate.clock import now

    found = _tokens(call).list()
    if call.as_json:
        call.print_json({"tokens": [_public(one) for one in found]})
        return
    if not found:
        say("there are no tokens. `foveate token create NAME` makes one.")
        return
    from foveate.cli.render import print_lines, table

    def ends(one: Token) -> str:
        return f"{one.expires} (expired)" if one.is_expired(now()) else one.expires or ""

    heads = ("id", "name", "project", "user", "agent", "scopes", "expires")
    rows = [
        (one.id, one.name, one.project, one.user or "", one.agent or "", " ".join(one.scopes), ends(one)) for one in found
    ]
    print_lines(table(heads, rows, left=len(heads)))


@token.command("revoke", cls=Verb)
@click.argument("id")
@pass_call
def revoke(call: Call, id: str) -> None:
    """Have a token end now, also in a running service."""
    gone = _tokens(call).revoke(id)
    if call.as_json:
        call.print_json({"revoked": gone.id})
    else:
        click.echo(f"{gone.id}  revoked")


def _public(one: Token) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name != "hash"}


VERBS: dict[str, Any] = {"token": token}
