# expect: RS101 at 6
import psycopg


class Loader:
    SQL = "insert into daily_orders select order_date, count(*) from orders_fact group by order_date"

    def load(self, cursor: psycopg.Cursor) -> None:
        cursor.execute(self.SQL)
