-- What every day of :start to :end must add up to, one row per day.
SELECT
    order_date,
    sum(order_count) AS orders,
    sum(amount_cents) AS cents
FROM daily_channel_mart
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date
