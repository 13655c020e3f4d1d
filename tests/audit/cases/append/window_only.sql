-- dialect: bigquery
-- expect: nothing
insert into ranked_orders
select order_id, order_date, row_number() over (partition by channel order by amount_cents desc) from orders_fact
where order_date = @day;
