"""`serve`: the HTTP service."""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from typing import Any

import click

from foveate.errors import InputError
from foveate.front.cli.calling import Call, Verb, pass_call

PORT = 8377


@click.command(cls=Verb)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen at; others than loopback need tokens."
)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="A name by which it is reached, such as a proxy's. Repeatable."
)
@click.option("--require-token", is_flag=True, help="Also on loopback.")
@click.option(
    "--rate", metavar="N/TIME", help="Requests of one caller, such as 600/minute; the default where tokens are needed."
)
@click.option("--workers", type=click.IntRange(1, 64), help="Requests at work at once; the rest wait in line.")
@click.option("--max-body", type=click.IntRange(1024), metavar="BYTES", help="The largest request.")
@pass_call
def serve(call: Call, host: str, port: int, names: tuple[str, ...], require_token: bool, **given: Any) -> None:
    """Serve the project over HTTP, until Ctrl-C.

    `/openapi.json` lists what there is. Others find the service through .foveate/service.json. stderr holds a line of JSON
    for each request. Needs `pip install foveate[server]`.
    """
    if any(find_spec(package) is None for package in ("fastapi", "uvicorn", "limits", "prometheus_client")):
        raise InputError("The service needs further packages: `pip install foveate[server]`.")
    from foveate.front.http.serving import RATE, run
    from foveate.front.http.settings import Settings
    from foveate.project import create as make_folder

    place = call.place()
    options = {name: value for name, value in given.items() if value is not None}
    settings = Settings(host=host, names=names, require_token=require_token, tokens=place.tokens, **options)
    if settings.needs_tokens:
        options = {"rate": RATE, **options}
        own = secrets.token_urlsafe(32)
        settings = Settings(host=host, names=names, require_token=True, tokens=place.tokens, own_token=own, **options)
    with call.open(create=True) as engine:
        make_folder(place)  # it says there where it is, wherever the state is
        run(engine, settings, port, place.service)


VERBS = {"serve": serve}
