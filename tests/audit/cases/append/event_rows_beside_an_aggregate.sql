-- dialect: snowflake
-- expect: nothing
insert into order_events
select e.order_id, e.kind, t.order_count from raw_events as e
join (select customer_id, count(*) as order_count from orders_fact group by customer_id) as t
  on t.customer_id = e.customer_id
where e.day = :day;
