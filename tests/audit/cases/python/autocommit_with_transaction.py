# expect: nothing
import psycopg


def load(url, day):
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute("delete from daily_orders where order_date = %s", [day])
        connection.execute(
            "insert into daily_orders select order_date, count(*) from orders_fact where order_date = %s group by 1", [day]
        )
