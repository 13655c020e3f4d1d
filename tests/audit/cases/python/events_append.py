# expect: nothing
import psycopg


def log(connection, event):
    connection.execute("insert into events (id, kind) values (%s, %s)", (event.id, event.kind))
    connection.executemany("insert into events (id, kind) values (%s, %s)", event.children)
