-- dialect: postgres
-- expect: RS103 at 4
insert into daily_ids as d select order_date, array_agg(order_id) from orders_fact group by order_date
on conflict (order_date) do update set ids = array_cat(d.ids, excluded.ids);
