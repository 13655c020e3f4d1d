-- expect: RS101 at 2
CREATE PROC load_daily AS BEGIN INSERT INTO daily_orders SELECT order_date, count(*) AS order_count FROM orders GROUP BY order_date; END
