-- The surcharge is one row that the benchmark flips between rounds, so that every group of the range really changes.
SELECT
    order_date,
    channel,
    count(*) AS order_count,
    sum(amount_cents) + (SELECT cents FROM surcharge) AS amount_cents
FROM orders
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
