# expect: RS202 at 6
import sqlalchemy


def remove_day(connection, day):
    connection.execute(sqlalchemy.text("delete from daily_orders where order_date = :day"), {"day": day})
    connection.commit()


def add_day(connection, day):
    connection.execute(
        sqlalchemy.text("insert into daily_orders select order_date, count(*) from orders where order_date = :day group by 1"),
        {"day": day},
    )
    connection.commit()


def load(connection, day):
    remove_day(connection, day)
    add_day(connection, day)
