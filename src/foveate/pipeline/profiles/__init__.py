"""Profiles: which slots a prompt has, how much room each gets and how candidates are weighed, as data in TOML files."""

from foveate.pipeline.profiles.choose import add_frame, layers
from foveate.pipeline.profiles.files import DEFAULT, ProfileInfo, known, load, names, places
from foveate.pipeline.profiles.profile import check, overlay, resolve
from foveate.pipeline.profiles.settings import FEATURES
from foveate.pipeline.profiles.toml_text import to_toml

__all__ = [
    "DEFAULT",
    "FEATURES",
    "ProfileInfo",
    "add_frame",
    "check",
    "known",
    "layers",
    "load",
    "names",
    "overlay",
    "places",
    "resolve",
    "to_toml",
]
