{{ config(materialized='incremental') }}
select order_id, order_date, channel, amount_cents, updated_at from {{ ref('orders') }} as o
{% if is_incremental() %}
where not exists (select 1 from {{ this }} as t where t.order_id = o.order_id)
{% endif %}
