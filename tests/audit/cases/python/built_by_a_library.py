# expect: nothing
from sqlalchemy import insert, select


def load(session, events, rows):
    session.execute(insert(events).values(rows))
    return session.execute(select(events.c.id)).all()
