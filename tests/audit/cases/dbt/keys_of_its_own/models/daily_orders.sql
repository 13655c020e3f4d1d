{{ config(materialized='incremental', unique_key='order_id', owner='finance', sla_hours=4, meta={'unique_keys': 'x'}, query_tag='orders') }}
select order_id, order_date, channel, amount_cents, updated_at from {{ ref('orders') }}
{% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
