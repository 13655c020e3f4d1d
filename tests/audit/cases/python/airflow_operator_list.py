# expect: nothing
from airflow import DAG
from airflow.providers.postgres.operators.postgres import PostgresOperator

with DAG("orders", schedule="@daily") as dag:
    load = PostgresOperator(
        task_id="load",
        sql=[
            "delete from daily_orders where order_date = '{{ ds }}'",
            "insert into daily_orders select order_date, count(*) from orders where order_date = '{{ ds }}' group by 1",
        ],
    )
