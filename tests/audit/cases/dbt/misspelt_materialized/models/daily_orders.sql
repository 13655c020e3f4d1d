{{ config(materialised='incremental', unique_key='order_id') }}
select order_id, order_date, channel, amount_cents, updated_at from {{ ref('orders') }}
