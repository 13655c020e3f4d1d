{{ config(materialized='incremental', unique_key='group_id') }}
select {{ dbt_utils.generate_surrogate_key(['order_date', 'channel']) }} as group_id, order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
{% if is_incremental() %} where order_date >= '{{ var("start") }}' {% endif %}
group by 1, order_date, channel
