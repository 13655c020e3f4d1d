{{ config(materialized='incremental', incremental_strategy='append') }}

SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM {{ source('shop', 'orders_fact') }}
{% if is_incremental() %}
WHERE order_date BETWEEN '{{ var("start") }}' AND '{{ var("end") }}'
{% endif %}
GROUP BY order_date, channel
