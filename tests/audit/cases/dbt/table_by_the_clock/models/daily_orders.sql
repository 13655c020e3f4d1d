{{ config(materialized='table') }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
where order_date >= current_date - 30
group by order_date, channel
