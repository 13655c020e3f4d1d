{{ config(materialized='incremental', unique_key='order_id') }}
select data :id :: int as order_id, data :channel :: string as channel, updated_at from {{ ref('orders') }}
{% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
