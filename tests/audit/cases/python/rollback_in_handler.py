# expect: nothing
import psycopg


def load(connection, day):
    try:
        connection.execute("delete from daily_orders where order_date = %s", (day,))
        connection.execute(
            "insert into daily_orders select order_date, count(*) from orders where order_date = %s group by 1", (day,)
        )
    except psycopg.Error:
        connection.rollback()
        connection.execute("delete from load_errors")
        connection.commit()
        raise
    connection.commit()
