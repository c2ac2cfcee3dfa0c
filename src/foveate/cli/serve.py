"""`serve` and `ui`: the HTTP service, and the inspector in a browser."""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from threading import Thread
from typing import Any

import click

from foveate import __version__
from foveate.cli.call import Call, Verb, pass_call, say
from foveate.errors import InputError
from foveate.integrations.hooks.service_file import PORT, Service, find_service

PAGES = "/ui/"


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

    `/openapi.json` lists what there is, and `/ui/` is the inspector. Others find the service through .foveate/service.json.
    stderr holds a line of JSON for each request. Needs `pip install foveate[server]`.
    """
    _refuse_unable()
    from foveate.project.project import create as make_folder
    from foveate.server.http.serving import RATE, run
    from foveate.server.http.settings import Settings

    place = call.place()
    options = {name: value for name, value in given.items() if value is not None}
    settings = Settings(host=host, names=names, require_token=require_token, tokens=place.tokens_file, **options)
    if settings.needs_tokens:
        options = {"rate": RATE, **options}
        own = secrets.token_urlsafe(32)
        settings = Settings(host=host, names=names, require_token=True, tokens=place.tokens_file, own_token=own, **options)
    with call.open(create=True) as engine:
        make_folder(place)  # it says there where it is, wherever the state is
        run(engine, settings, port, place.service_file)


@click.command(cls=Verb)
@click.option("--port", type=click.IntRange(0, 65535), help=f"Where to listen; else {PORT}, or any where that is taken.")
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@pass_call
def ui(call: Call, port: int | None, no_browser: bool) -> None:
    """Open the inspector in a browser.

    What the models saw, why, and what was left out. Where `foveate serve` runs for the project, its pages are opened; else
    they are served here, to this machine alone, until Ctrl-C. Needs `pip install foveate[server]`.
    """
    place = call.place()
    running = find_service(place.service_file)
    if running is not None:
        if running.version != __version__:
            raise InputError(
                f"Process {running.pid} serves this project by foveate {running.version}: start it again by {__version__}."
            )
        if port is not None:
            say(f"--port says nothing here: the project is served already, by process {running.pid}.")
        _greet(call, running, no_browser)
        return
    _refuse_unable()
    from foveate.project.project import create as make_folder
    from foveate.server.http.serving import run
    from foveate.server.http.settings import Settings

    def greet(url: str) -> None:
        _greet(call, Service(url, 0), no_browser)
        say("Ctrl-C ends it.")

    with call.open() as engine:
        make_folder(place)
        run(engine, Settings(tokens=place.tokens_file), port, place.service_file, greet)


def _greet(call: Call, service: Service, no_browser: bool) -> None:
    import webbrowser

    address = service.url + PAGES
    if call.as_json:
        call.print_json({"url": address})
    else:
        click.echo(address)
    if service.token:
        say("it asks for a token: `foveate token create NAME` makes one.")
    if not no_browser:  # beside: a browser of the terminal ends when it is left
        Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _refuse_unable() -> None:
    if any(find_spec(package) is None for package in ("fastapi", "uvicorn", "limits", "prometheus_client", "jinja2")):
        raise InputError("The service needs further packages: `pip install foveate[server]`.")


VERBS = {"serve": serve, "ui": ui}
