# expect: RS101 at 11
from airflow import DAG
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator

with DAG("orders", schedule="@daily") as dag:
    load = SQLExecuteQueryOperator(
        task_id="load",
        conn_id="shop_postgres",
        sql="""
            -- one day
            insert into daily_orders
            select order_date, channel, count(*) from orders_fact where order_date = '{{ ds }}' group by 1, 2
        """,
    )
