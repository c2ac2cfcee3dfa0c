"""Stores of records: one protocol, implemented on SQLite and PostgreSQL."""
