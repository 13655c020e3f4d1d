# expect: RS101 at 8
import psycopg


def load(url, day):
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into daily_orders "
            "select order_date, channel, count(*) from orders_fact where order_date = %s group by 1, 2",
            (day,),
        )
