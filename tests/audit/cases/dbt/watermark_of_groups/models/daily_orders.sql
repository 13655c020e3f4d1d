{{ config(materialized='incremental', unique_key=['order_date', 'channel']) }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
{% if is_incremental() %}
  where order_date >= (select max(order_date) from {{ this }})
{% endif %}
group by order_date, channel
