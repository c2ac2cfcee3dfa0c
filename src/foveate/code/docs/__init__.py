"""Codebase docs from the documents, manifests and structure of a repository. `describe` is the entry point."""

from foveate.code.docs.describe import CodebaseDocs, DocSection, describe, from_json
from foveate.code.docs.manifests import ProjectConfig

__all__ = ["CodebaseDocs", "DocSection", "ProjectConfig", "describe", "from_json"]
