-- dialect: tsql
-- expect: RS202 at 5
ALTER PROC load_daily @day date -- the same as before
AS BEGIN SET NOCOUNT ON;
DELETE FROM daily_orders WHERE order_date = @day
INSERT INTO daily_orders
SELECT order_date, count(*) AS order_count FROM orders WHERE order_date = @day GROUP BY order_date
END
