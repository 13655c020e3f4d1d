-- dialect: bigquery
-- expect: RS101 at 3
insert into shop.daily_orders
select d, coalesce(o.n, 0) from unnest(generate_date_array(@start, @end)) as d
left join (select order_date, count(*) as n from shop.orders_fact group by order_date) as o on o.order_date = d;
