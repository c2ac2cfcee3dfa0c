"""What a repository says of itself, read from its documents, manifests and structure: `describe` is the way in."""

from foveate.code.docs.describe import Codebase, DocSection, describe, from_json
from foveate.code.docs.stack import ProjectConfig

__all__ = ["Codebase", "DocSection", "ProjectConfig", "describe", "from_json"]
