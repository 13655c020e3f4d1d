MODEL (
  name main.daily_orders,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (order_date, channel)),
  start '2026-01-01',
  end '2026-01-03',
  grain (order_date, channel)
);

SELECT order_date, channel, count(*) AS order_count, sum(amount_cents)::BIGINT AS amount_cents
FROM main.orders_fact
WHERE order_date BETWEEN @start_date AND @end_date
GROUP BY order_date, channel
