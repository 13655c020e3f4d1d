{% macro check() %}{{ config.get('unique_keys') }}{% endmacro %}
