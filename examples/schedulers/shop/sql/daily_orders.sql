-- A day is one of the contract's time zone: the session is set to it, and so are both instants.
SELECT CAST(ordered_at AS DATE) AS order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders
WHERE ordered_at >= :start_instant AND ordered_at < :end_instant
GROUP BY ALL
