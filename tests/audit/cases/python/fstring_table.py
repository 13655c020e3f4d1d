# expect: RS101 at 6
import psycopg


def load(connection, table, day):
    query = f"insert into {table} select order_date, count(*) from orders where order_date = '{day:%Y-%m-%d}' group by 1"
    connection.execute(query)
