"""Profiles: which slots a prompt has, how much room each gets and how candidates are weighed, all as data.

Comes in: the names of layers, directories to look them up in, and what the call itself sets. Goes out: one `Profile`,
with the layer that set each value. This room allocates no tokens, asks no source and reads nothing but `*.toml`.
"""

from foveate.pipeline.profiles.choose import framed, layers
from foveate.pipeline.profiles.files import ProfileInfo, known, load, names, places
from foveate.pipeline.profiles.profile import check, overlay, resolve
from foveate.pipeline.profiles.settings import FEATURES
from foveate.pipeline.profiles.toml_text import to_toml

__all__ = [
    "FEATURES",
    "ProfileInfo",
    "check",
    "framed",
    "known",
    "layers",
    "load",
    "names",
    "overlay",
    "places",
    "resolve",
    "to_toml",
]
