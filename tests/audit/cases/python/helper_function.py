# expect: nothing
import psycopg


def clear(cursor, day):
    cursor.execute("delete from daily_orders where order_date = %s", (day,))


def fill(cursor, day):
    cursor.execute("insert into daily_orders select order_date, count(*) from orders where order_date = %s group by 1", (day,))


def load(url, day):
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        clear(cursor, day)
        fill(cursor, day)
