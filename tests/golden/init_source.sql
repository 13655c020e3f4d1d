-- The SELECT that recomputes daily_orders.
-- unsure: source: which table daily_orders is computed from is not known; source_of_daily_orders stands in
--   its place, and a plan stops there until you name the real one
-- unsure: grain: channel is NULL in 1 row; NULL is kept as a key of its own
SELECT
    order_date
FROM source_of_daily_orders
WHERE order_date BETWEEN :start AND :end

