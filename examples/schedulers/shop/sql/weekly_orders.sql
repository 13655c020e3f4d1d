SELECT CAST(date_trunc('week', ordered_at) AS DATE) AS week, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders
WHERE ordered_at >= :start_instant AND ordered_at < :end_instant
GROUP BY ALL
