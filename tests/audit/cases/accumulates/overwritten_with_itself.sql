-- dialect: snowflake
-- expect: RS103 at 4
insert overwrite into totals
select customer_id, sum(n) as n
from (select customer_id, n from totals union all select customer_id, count(*) from orders_fact group by customer_id) as b
group by customer_id;
