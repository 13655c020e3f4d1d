-- dialect: tsql
-- expect: RS101 at 3
CREATE OR ALTER PROCEDURE dbo.load_daily @day AS date WITH EXECUTE AS OWNER AS BEGIN INSERT INTO daily_orders SELECT order_date, count(*) AS order_count FROM orders WHERE order_date = @day GROUP BY order_date; END
