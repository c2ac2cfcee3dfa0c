"""The HTTP service: `foveate serve`, or `create_app` for a server of your own. Needs `pip install foveate[server]`."""

from foveate.server.http.app import create_app
from foveate.server.http.settings import Settings

__all__ = ["Settings", "create_app"]
