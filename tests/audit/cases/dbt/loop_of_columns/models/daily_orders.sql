{% set channels = ['web', 'store'] %}
{{ config(materialized='incremental', unique_key='order_date') }}
select order_date, region,
{% for channel in channels %}
  sum(case when channel = '{{ channel }}' then amount_cents end) as {{ channel }}_cents{% if not loop.last %},{% endif %}
{% endfor %}
from {{ ref('orders') }}
{% if is_incremental() %} where order_date >= '{{ var("start") }}' {% endif %}
{{ dbt_utils.group_by(n=2) }}
