# expect: nothing
import duckdb


def load(path, day):
    con = duckdb.connect(path)
    con.execute("BEGIN")
    con.execute("delete from daily_orders where order_date = ?", [day])
    con.execute("insert into daily_orders select order_date, count(*) from orders where order_date = ? group by 1", [day])
    con.execute("COMMIT")
