{{ config(materialized='table', event_time='order_date') }}
select * from {{ source('shop', 'orders') }}
