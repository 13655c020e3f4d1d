INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*), CAST(sum(amount_cents) AS BIGINT)
FROM orders_fact AS facts
WHERE order_date BETWEEN :start AND :end
  AND NOT EXISTS (
      SELECT 1 FROM daily_orders AS there
      WHERE there.order_date = facts.order_date AND there.channel = facts.channel
  )
GROUP BY order_date, channel;
