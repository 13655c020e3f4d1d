-- A teaching sketch for throw-away copies: the write that doubles a total when it is run again. The SELECT is right,
-- the task ends green, and nothing removes what the run before it left. No reslice command writes like this.
INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
