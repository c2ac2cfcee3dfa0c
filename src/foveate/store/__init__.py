"""Where records are stored: one contract, with SQLite and PostgreSQL behind it."""
