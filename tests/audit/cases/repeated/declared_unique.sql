-- dialect: snowflake
-- expect: nothing
create table staged_orders (order_id number primary key, amount_cents number);
merge into orders_fact as t using staged_orders as s on t.order_id = s.order_id
when matched then update set amount_cents = s.amount_cents
when not matched then insert (order_id, amount_cents) values (s.order_id, s.amount_cents);
