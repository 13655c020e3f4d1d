-- dialect: tsql
-- expect: nothing
CREATE PROCEDURE load_daily @day date AS
BEGIN TRAN;
SET XACT_ABORT ON;
DELETE FROM daily_orders WHERE order_date = @day;
INSERT INTO daily_orders
SELECT order_date, count(*) AS order_count FROM orders WHERE order_date = @day GROUP BY order_date;
COMMIT;
