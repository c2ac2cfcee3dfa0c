"""Finds the project of a folder and reads its settings."""
