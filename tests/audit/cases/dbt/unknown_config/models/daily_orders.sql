{% set options = defaults() %}
{{ config(materialized='incremental', **options) }}
select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
from {{ ref('orders') }}
group by order_date, channel
