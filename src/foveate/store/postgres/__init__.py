"""A store in PostgreSQL with pgvector, for a team."""

from importlib import import_module

from foveate.errors import InputError

# Every module of this package needs the driver, which is an extra. So its absence is reported here, once for all of them.
try:
    for _name in ("psycopg", "psycopg_pool"):
        import_module(_name)
except ImportError as error:
    raise InputError("A store on PostgreSQL needs its driver. Install it with `pip install foveate[postgres]`.") from error
