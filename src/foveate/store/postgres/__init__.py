"""The shared store on a PostgreSQL server."""
