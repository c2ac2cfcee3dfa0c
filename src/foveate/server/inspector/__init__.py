"""The inspector: what the model saw, why, and what was left out. Pages of the service, below `/ui`.

A page is a document, computed from the engine, and a template that shows exactly that document; `.json` and `.md` after the
name of a page give the same document. Pages are made here, on the server: scripts only make them handier. Nothing is loaded
from anywhere else.
"""
