{{ config(materialized='incremental') }}
select order_id, order_date, channel, amount_cents, updated_at from {{ ref('orders') }}
{% if is_incremental() %} where order_date >= current_date - 3 {% endif %}
