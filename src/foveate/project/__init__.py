"""Find the project of a folder, read its settings, and refuse a store that came with a repository."""
