-- A teaching sketch for throw-away copies: groups that are in the orders are overwritten or added. A group that has left
-- them is not looked at, and stays. The key must be enforced.
INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
ON CONFLICT (order_date, channel) DO UPDATE
SET order_count = excluded.order_count, amount_cents = excluded.amount_cents
