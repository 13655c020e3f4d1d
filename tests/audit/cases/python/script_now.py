# expect: note RS602 at 7
import datetime

import psycopg

with psycopg.connect("service=shop") as connection:
    day = datetime.date.today() - datetime.timedelta(days=1)
    connection.execute("delete from daily_orders where order_date = %s", (day,))
    connection.execute(
        "insert into daily_orders select order_date, count(*) from orders where order_date = %s group by 1", (day,)
    )
