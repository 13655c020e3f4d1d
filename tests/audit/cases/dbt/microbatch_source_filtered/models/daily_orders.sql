{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='order_date', batch_size='day', begin='2026-01-01') }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ source('shop', 'orders') }}
group by order_date, channel
