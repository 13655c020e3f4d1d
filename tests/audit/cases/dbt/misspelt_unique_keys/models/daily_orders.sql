{{ config(
    materialized='incremental',
    unique_keys=['order_date', 'channel']
) }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
{% if is_incremental() %} where order_date >= '{{ var("start") }}' {% endif %}
group by order_date, channel
