INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*), CAST(sum(amount_cents) AS BIGINT)
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
ON CONFLICT (order_date, channel) DO UPDATE SET
    order_count = daily_orders.order_count + excluded.order_count,
    amount_cents = daily_orders.amount_cents + excluded.amount_cents;
