"""How a command finds a PostgreSQL database: a URL, the variables of libpq, and how a SQL script is run there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from urllib.parse import quote as percent
from urllib.parse import urlencode

import psycopg

from reslice.contract import Connection
from reslice.engines.postgres.errors import lines_of

TAKEN = frozenset({"PGSERVICE", "PGHOSTADDR", "PGOPTIONS", "PGPASSFILE", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT",
                    "PGSSLKEY", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD"})  # fmt: skip
"""Variables of libpq that would lead a command elsewhere; those of the sandbox are set anew."""
VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "hostaddr": "PGHOSTADDR",
    "options": "PGOPTIONS",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
}


def url_of(parameters: dict[str, str]) -> str:
    """Return a URL that libpq and the drivers of other languages read, with everything that is given."""
    rest = {
        key: value for key, value in parameters.items() if key not in ("user", "password", "host", "port", "dbname")
    }
    user, password = (percent(parameters.get(key, ""), safe="") for key in ("user", "password"))
    who = f"{user}:{password}" if password else user
    host, port = parameters.get("host", ""), parameters.get("port", "")
    if not host or host.startswith(("/", "@")):
        rest = {"host": host, "port": port} | rest if host else rest
        host = port = ""
    host = f"[{host}]" if ":" in host else host
    place = f"{host}:{port}" if port and host else host
    query = urlencode({key: value for key, value in rest.items() if value}, quote_via=percent)
    name = percent(parameters.get("dbname", ""), safe="")
    return f"postgresql://{f'{who}@' if who else ''}{place}/{name}{f'?{query}' if query else ''}"


def run_script(connection: Connection, statements: Sequence[str]) -> str:
    """Run statements one by one, each committed by itself unless they say BEGIN; return what failed, or nothing."""
    try:
        with closing(psycopg.connect(connection.url, autocommit=True, prepare_threshold=None)) as opened:
            for number, statement in enumerate(statements, start=1):
                try:
                    opened.execute(statement.encode())
                except psycopg.Error as error:
                    return f"statement {number}: {'; '.join(lines_of(error, 2))}"
    except psycopg.Error as error:
        return "; ".join(lines_of(error, 2))
    return ""
