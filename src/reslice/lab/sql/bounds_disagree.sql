-- A teaching sketch for throw-away copies: a replacement whose two statements mean different days. The delete stops
-- before the end date and the insert includes it, so the last day is appended.
BEGIN;

DELETE FROM daily_orders
WHERE order_date >= :start AND order_date < :end;

INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel;

COMMIT
