"""`foveate token`: who may use the service of a project."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from foveate.cli.call import Call, Verb, VerbGroup, pass_call, say
from foveate.cli.render import print_lines, table
from foveate.clock import is_age, now, parse_time
from foveate.errors import InputError
from foveate.server.tokens import SCOPES, Token, Tokens

DEFAULT_SCOPES = tuple(scope for scope in SCOPES if scope != "admin")


def parse_expiry(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Parse a time, or a duration from now such as `30d`."""
    if value is None:
        return None
    current = now()
    time = parse_time(value, "--expires", current=current)
    return 2 * current - time if is_age(value) else time


@click.group(cls=VerbGroup, invoke_without_command=True)
@pass_call
def token(call: Call) -> None:
    """List the tokens of the service, without their secrets."""
    tokens = _tokens(call).list()
    if call.as_json:
        call.print_json({"tokens": [_public(each) for each in tokens]})
        return
    if not tokens:
        say("there are no tokens yet. `foveate token create NAME` creates one.")
        return

    def expiry(token: Token) -> str:
        return f"{token.expires} (expired)" if token.is_expired(now()) else token.expires or ""

    heads = ("id", "name", "project", "user", "agent", "allows", "expires")
    rows = [
        (each.id, each.name, each.project, each.user or "", each.agent or "", " ".join(each.scopes), expiry(each))
        for each in tokens
    ]
    print_lines(table(heads, rows, left=len(heads)))


@token.command("create", cls=Verb)
@click.argument("name")
@click.option("--allow", "allowed", multiple=True, metavar="SCOPE", help=f"{', '.join(SCOPES)}. Repeatable.")
@click.option("--agent", metavar="NAME", help="Bind the token to this agent.")
@click.option("--expires", callback=parse_expiry, metavar="TIME", help="When it expires: 2027-01-31, or 30d from now.")
@pass_call
def create(call: Call, name: str, allowed: tuple[str, ...], agent: str | None, expires: int | None) -> None:
    """Create a token and print it, once.

    `foveate token create ci --allow context:read --expires 90d`. Without --allow, it allows everything but admin. A token is
    for one project, this one or that of --project, and with --user or --agent for one user or agent; otherwise requests name
    any user and agent. Only its hash is stored.
    """
    created, secret = _tokens(call).create(
        name, allowed or DEFAULT_SCOPES, call.project_name(), user=call.user, agent=agent, expires=expires
    )
    if call.as_json:
        call.print_json({"token": secret, **_public(created)})
        return
    click.echo(secret)
    say(f"token {created.id} for {created.name!r} allows {', '.join(created.scopes)}. It is not shown again.")


@token.command("revoke", cls=Verb)
@click.argument("id")
@pass_call
def revoke(call: Call, id: str) -> None:
    """End a token now, also in a running service."""
    revoked = _tokens(call).revoke(id)
    call.print({"revoked": revoked.id}, f"{revoked.id}  revoked")


def _tokens(call: Call) -> Tokens:
    from foveate.project.project import create as create_folder

    place = call.place()
    if not place.has_store:
        raise InputError("there is no store here. Create one with `foveate init`.")
    create_folder(place)  # tokens are stored where the service runs, also if the records are in a database
    return Tokens(place.tokens_file)


def _public(token: Token) -> dict[str, Any]:
    return {name: value for name, value in asdict(token).items() if name != "hash"}


VERBS: dict[str, Any] = {"token": token}
