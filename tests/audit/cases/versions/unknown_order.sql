-- dialect: redshift
-- expect: unknown RS405 at 5
create table latest_orders_copy as
select order_id, order_date, amount_cents from orders_loaded
where order_date >= :start and order_date < :end
qualify row_number() over (partition by order_id order by loaded_at desc) = 1;
