-- A teaching sketch for throw-away copies: a MERGE that also deletes what the orders no longer have, and only inside the
-- range. Without the two bounds in the last branch it would delete every other day of the table.
MERGE INTO daily_orders
USING (
    SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
    FROM orders_fact
    WHERE order_date BETWEEN :start AND :end
    GROUP BY order_date, channel
) AS source
ON daily_orders.order_date = source.order_date AND daily_orders.channel = source.channel
WHEN MATCHED THEN
    UPDATE SET order_count = source.order_count, amount_cents = source.amount_cents
WHEN NOT MATCHED THEN
    INSERT (order_date, channel, order_count, amount_cents)
    VALUES (source.order_date, source.channel, source.order_count, source.amount_cents)
WHEN NOT MATCHED BY SOURCE
    AND daily_orders.order_date BETWEEN :start AND :end THEN
    DELETE
