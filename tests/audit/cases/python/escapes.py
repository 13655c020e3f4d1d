# expect: RS101 at 6
import psycopg


def load(connection):
    connection.execute("insert into daily_orders\n select order_date, count(*)\tfrom \"orders\" group by 1")
