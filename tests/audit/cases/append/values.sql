-- dialect: postgres
-- expect: nothing
insert into daily_orders (order_date, channel, order_count) values (:day, 'web', 12);
