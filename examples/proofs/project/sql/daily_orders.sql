SELECT order_date, channel, count(*) AS order_count, CAST(sum(amount_cents) AS BIGINT) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
