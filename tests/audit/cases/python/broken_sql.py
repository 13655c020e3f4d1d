# expect: unparsed at 6, RS101 at 7
import psycopg


def load(connection):
    connection.execute("insert into daily_orders select order_date, count(*) from 'orders group by 1")
    connection.execute("insert into daily_orders select order_date, count(*) from orders group by 1")
