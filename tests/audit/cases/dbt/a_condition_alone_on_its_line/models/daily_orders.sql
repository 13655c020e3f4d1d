{{ config(materialized='incremental', unique_key=['order_date', 'channel']) }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
where channel is not null
  {{ only_recent('order_date') }}
group by order_date, channel
