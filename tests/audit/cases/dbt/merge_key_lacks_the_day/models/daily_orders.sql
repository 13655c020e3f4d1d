{{ config(materialized='incremental', incremental_strategy='merge', unique_key='channel') }}
select cast(ordered_at as date) as order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
{% if is_incremental() %} where order_date >= '{{ var("start") }}' {% endif %}
group by 1, 2
