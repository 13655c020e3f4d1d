# expect: RS103 at 6
import psycopg

UPSERT = """
insert into daily_orders (order_date, order_count) select order_date, count(*) from orders_fact group by order_date
on conflict (order_date) do update set order_count = daily_orders.order_count + excluded.order_count
"""


def load(connection: psycopg.Connection) -> None:
    connection.execute(UPSERT)
