"""The code index of a repository, with search, the repository map and the codebase docs.

The index is derived from the files: it can be deleted and is built again. Lines shown to a model are read from the file.
"""
