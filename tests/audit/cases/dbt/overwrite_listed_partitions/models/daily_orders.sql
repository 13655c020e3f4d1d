{% set partitions_to_replace = ['current_date', 'date_sub(current_date, interval 1 day)'] %}
{{ config(
  materialized='incremental',
  incremental_strategy='insert_overwrite',
  partition_by={'field': 'order_date', 'data_type': 'date'},
  partitions=partitions_to_replace
) }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
{% if is_incremental() %} where order_date in ({{ partitions_to_replace | join(',') }}) {% endif %}
group by order_date, channel
