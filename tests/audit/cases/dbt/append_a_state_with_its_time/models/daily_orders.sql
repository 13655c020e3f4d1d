{{ config(materialized='incremental') }}
select warehouse, item, quantity, current_timestamp() as loaded_at from {{ ref('stock') }}
