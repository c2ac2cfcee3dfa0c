"""Trains the vectors of `foveate.text.static_vectors`. See README.md; nothing here is part of the package."""
