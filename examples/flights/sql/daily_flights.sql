-- Flights per day of departure, carrier and origin, for the days from :start to :end, both included. The day is the
-- local date that was published, so the range is taken by dates. Delays are in minutes; early is negative.
SELECT
    make_date(year, month, day) AS flight_date,
    carrier,
    origin,
    count(*) AS flights,
    count(*) FILTER (dep_time IS NULL) AS cancelled,
    sum(distance) AS miles,
    sum(dep_delay) AS dep_delay,
    sum(arr_delay) AS arr_delay,
    avg(arr_delay) AS arr_delay_mean
FROM flights
WHERE make_date(year, month, day) BETWEEN :start AND :end
GROUP BY ALL
