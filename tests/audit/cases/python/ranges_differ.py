# expect: RS201 at 6
import psycopg


def load(connection, start, end):
    connection.execute("delete from daily_orders where order_date > %s and order_date <= %s", (start, end))
    connection.execute(
        "insert into daily_orders select order_date, count(*) from orders where order_date between %s and %s group by 1",
        (start, end),
    )
