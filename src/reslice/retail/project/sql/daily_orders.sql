-- Recomputes daily_orders for the days :start to :end, both included.
SELECT
    order_date,
    channel,
    count(*) AS order_count,
    sum(amount_cents) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
