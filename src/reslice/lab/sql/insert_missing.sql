-- A teaching sketch for throw-away copies: only groups that are not there yet are added. What has changed stays as it
-- was, and so does a group that has left the orders. The key must be enforced.
INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
ON CONFLICT (order_date, channel) DO NOTHING
