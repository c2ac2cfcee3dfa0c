"""`foveate serve` and `foveate ui`: the HTTP service, and the inspector in a browser."""

from __future__ import annotations

import secrets
from dataclasses import replace
from importlib.util import find_spec
from threading import Thread

import click

from foveate import __version__
from foveate.cli.call import Call, Verb, pass_call, say
from foveate.errors import InputError
from foveate.integrations.hooks.service_file import PORT, Service, find_service

PAGES = "/ui/"


@click.command(cls=Verb)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; beyond loopback, tokens are needed.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port; 0: any free.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="Further host name, such as a proxy's. Repeatable.")
@click.option("--require-token", is_flag=True, help="Require a token on loopback, too.")
@click.option("--rate", metavar="N/TIME", help="Limit the requests of one caller, as 600/minute does.")
@click.option("--workers", type=click.IntRange(1, 64), help="Number of requests that run at once; others wait.")
@click.option("--max-body", type=click.IntRange(1024), metavar="BYTES", help="Maximum size of a request.")
@pass_call
def serve(
    call: Call,
    host: str,
    port: int,
    names: tuple[str, ...],
    require_token: bool,
    rate: str | None,
    workers: int | None,
    max_body: int | None,
) -> None:
    """Serve the project over HTTP until Ctrl-C.

    `/openapi.json` lists the routes, and `/ui/` is the inspector. Other programs find the service by .foveate/service.json.
    stderr gets a line of JSON for each request. Needs `pip install foveate[server]`.
    """
    _refuse_missing_packages()
    from foveate.project.project import create as create_folder
    from foveate.server.http.serving import RATE, run
    from foveate.server.http.settings import MAX_BODY, WORKERS, Settings

    place = call.place()
    settings = Settings(
        host=host,
        names=names,
        require_token=require_token,
        tokens=place.tokens_file,
        rate=rate or "",
        workers=workers or WORKERS,
        max_body=max_body or MAX_BODY,
    )
    if settings.needs_tokens:
        own_token = secrets.token_urlsafe(32)
        settings = replace(settings, require_token=True, own_token=own_token, rate=rate or RATE)
    with call.open(create=True) as engine:
        create_folder(place)  # service.json is there, also if the records are in a database
        run(engine, settings, port, place.service_file)


@click.command(cls=Verb)
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port; by default {PORT}, or any free one if that is taken.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@pass_call
def ui(call: Call, port: int | None, no_browser: bool) -> None:
    """Open the inspector in a browser.

    It shows what the models saw, why, and what was left out. If `foveate serve` runs for the project, its pages are opened.
    Otherwise they are served to this machine only, until Ctrl-C. Needs `pip install foveate[server]`.
    """
    place = call.place()
    running = find_service(place.service_file)
    if running is not None:
        if running.version != __version__:
            raise InputError(
                f"Process {running.pid} serves this project with foveate {running.version}. Restart it with {__version__}."
            )
        if port is not None:
            say(f"--port is ignored: process {running.pid} serves the project already.")
        _open_pages(call, running, no_browser)
        return
    _refuse_missing_packages()
    from foveate.project.project import create as create_folder
    from foveate.server.http.serving import run
    from foveate.server.http.settings import Settings

    def on_start(url: str) -> None:
        _open_pages(call, Service(url, 0), no_browser)
        say("press Ctrl-C to stop.")

    with call.open() as engine:
        create_folder(place)
        run(engine, Settings(tokens=place.tokens_file), port, place.service_file, on_start)


def _open_pages(call: Call, service: Service, no_browser: bool) -> None:
    import webbrowser

    address = service.url + PAGES
    call.print({"url": address}, address)
    if service.token:
        say("it asks for a token: `foveate token create NAME` creates one.")
    if not no_browser:  # in a thread, because a browser in the terminal returns only when it is closed
        Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _refuse_missing_packages() -> None:
    if any(find_spec(package) is None for package in ("fastapi", "uvicorn", "limits", "prometheus_client", "jinja2")):
        raise InputError("The service needs further packages: `pip install foveate[server]`.")


VERBS = {"serve": serve, "ui": ui}
