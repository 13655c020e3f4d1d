{{ config(
    materialized='incremental',
    partition_by={'field': 'order_date', 'data_type': 'date'}
) }}
with daily_orders as (select * from {{ ref('orders') }}, unnest(items) as item)
select * from daily_orders
