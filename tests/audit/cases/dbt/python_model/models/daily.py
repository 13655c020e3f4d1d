def model(dbt, session):
    dbt.config(materialized='incremental')
    return dbt.ref('orders')
