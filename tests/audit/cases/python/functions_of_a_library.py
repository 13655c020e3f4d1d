# expect: nothing
import sqlalchemy


def remove_event(connection, id):
    connection.execute(sqlalchemy.text("delete from events where id = :id"), {"id": id})
    connection.commit()


def add_event(connection, user, kind):
    connection.execute(sqlalchemy.text("insert into events (user_id, kind) values (:user, :kind)"), {"user": user, "kind": kind})
    connection.commit()
