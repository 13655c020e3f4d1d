-- Shipments per day, mode and return flag, for the days from :start to :end, both included. Prices are decimals from
-- end to end: two digits each, so four after one product and six after two, and nothing is rounded.
SELECT
    l_shipdate AS ship_date,
    l_shipmode AS ship_mode,
    l_returnflag AS return_flag,
    count(*) AS lines,
    sum(l_quantity) AS quantity,
    sum(l_extendedprice) AS base_price,
    sum(l_extendedprice * (1 - l_discount)) AS disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge
FROM lineitem
WHERE l_shipdate BETWEEN :start AND :end
GROUP BY ALL
