{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='order_date', batch_size='day', begin='2026-01-01', unique_key='order_id') }}
select order_id, order_date, channel, amount_cents, updated_at from {{ source('shop', 'orders') }}
