{{ config(materialized='incremental', unique_keys=['order_id']) }}
select order_id, order_date, channel, amount_cents, updated_at from {{ ref('orders') }}
{% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
