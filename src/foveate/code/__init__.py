"""The derived code index: walk -> set aside -> parse -> index, and what is read off it: search, map, docs, files.

It holds nothing that the files do not say. Delete it and it is built again. The lines that a model sees are read from the
file when they are shown.
"""
