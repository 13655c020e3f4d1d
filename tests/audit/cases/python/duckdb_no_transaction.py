# expect: RS202 at 6
import duckdb

con = duckdb.connect("shop.duckdb")
day = "2026-01-02"
con.execute("delete from daily_orders where order_date = ?", [day])
con.execute("insert into daily_orders select order_date, count(*) from orders where order_date = ? group by 1", [day])
