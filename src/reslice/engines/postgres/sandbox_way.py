"""How a command finds a PostgreSQL database: a URL, the variables of libpq."""

from __future__ import annotations

from urllib.parse import quote as percent
from urllib.parse import urlencode

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
