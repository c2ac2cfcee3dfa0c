"""Profiles: the slots of a prompt, their sizes and the weights of candidates, as data in TOML files."""

from foveate.pipeline.profiles.choose import layer_names, with_frame
from foveate.pipeline.profiles.files import DEFAULT, ProfileInfo, list_profiles, load, names, profile_dirs
from foveate.pipeline.profiles.profile import check, overlay, resolve
from foveate.pipeline.profiles.settings import FEATURES
from foveate.pipeline.profiles.toml_text import to_toml

__all__ = [
    "DEFAULT",
    "FEATURES",
    "ProfileInfo",
    "check",
    "layer_names",
    "list_profiles",
    "load",
    "names",
    "overlay",
    "profile_dirs",
    "resolve",
    "to_toml",
    "with_frame",
]
