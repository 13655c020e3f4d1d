{{ config(materialized='incremental') }}
select order_id, order_date, channel, amount_cents, updated_at from {{ ref('orders') }}
{% if not is_incremental() %}
where order_date >= '2020-01-01'
{% else %}
where updated_at >= (select max(updated_at) from {{ this }})
{% endif %}
