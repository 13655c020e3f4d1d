-- What each day must add up to, on another path than the source: no groups within the day, and the products multiplied
-- out, so that discount and tax are sums of their own.
SELECT
    l_shipdate AS ship_date,
    count(*) AS lines,
    sum(l_quantity) AS quantity,
    sum(l_extendedprice) AS base_price,
    sum(l_extendedprice) - sum(l_extendedprice * l_discount) AS disc_price,
    sum(l_extendedprice)
        - sum(l_extendedprice * l_discount)
        + sum(l_extendedprice * l_tax)
        - sum(l_extendedprice * l_discount * l_tax) AS charge
FROM lineitem
WHERE l_shipdate BETWEEN :start AND :end
GROUP BY l_shipdate
