{{ config(materialized='incremental') }}
{{ union_of_relations(['a', 'b']) }}
