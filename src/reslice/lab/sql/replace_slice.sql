-- A teaching sketch for throw-away copies: the days are deleted and inserted again in one transaction. Both statements
-- have the same two bounds. A reslice run does this with its checks around it.
BEGIN;

DELETE FROM daily_orders
WHERE order_date BETWEEN :start AND :end;

INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel;

COMMIT
