{{ config(
    materialized='incremental',
    incremental_strategy='microbatch',
    event_time='order_date',
    batch_size='day',
    begin='2026-01-01',
    unique_key=['order_date', 'channel'] if target.type == 'postgres' else none
) }}
-- dbt-postgres writes a batch by merge, and asks for a key; dbt-duckdb deletes the batch's time span and inserts.

SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM {{ source('shop', 'orders_fact') }}
GROUP BY order_date, channel
