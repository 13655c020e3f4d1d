-- dialect: hive
-- expect: RS101 at 4
from orders_fact
insert into table daily_orders select order_date, count(*) group by order_date;
