{{ config(materialized='incremental', unique_key=the_key()) }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
group by order_date, channel
