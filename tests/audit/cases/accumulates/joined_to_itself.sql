-- dialect: postgres
-- expect: RS103 at 4
insert into totals (customer_id, n)
select s.customer_id, coalesce(t.n, 0) + s.n
from (select customer_id, count(*) as n from orders_fact where order_date = :day group by customer_id) as s
left join totals as t on t.customer_id = s.customer_id
on conflict (customer_id) do update set n = excluded.n;
