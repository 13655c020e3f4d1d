# expect: RS101 at 7
import psycopg

TABLE = "daily_orders"

def load(connection, day):
    connection.execute("insert into {} select order_date, count(*) from {} where order_date = '{}' group by 1".format(TABLE, "orders", day))
