-- What each day must add up to, on another path than the source: no carriers and no origins, days taken from the instant
-- of the scheduled departure, and cancelled flights as those without a delay.
SELECT
    CAST(timezone('America/New_York', time_hour) AS DATE) AS flight_date,
    count(*) AS flights,
    count(*) - count(dep_delay) AS cancelled,
    sum(distance) AS miles,
    sum(dep_delay) AS dep_delay,
    sum(arr_delay) AS arr_delay
FROM flights
WHERE time_hour >= :start_instant AND time_hour < :end_instant
GROUP BY ALL
