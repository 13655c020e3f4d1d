# expect: RS202 at 6
import psycopg2


def load(connection, day):
    cursor = connection.cursor(); cursor.execute("delete from daily_orders where order_date = %(day)s", {"day": day})
    connection.commit()
    cursor.execute(
        "insert into daily_orders select order_date, count(*) from orders_fact where order_date = %(day)s group by 1",
        {"day": day},
    )
    connection.commit()
