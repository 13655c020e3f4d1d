# expect: RS202 at 6
from airflow import DAG
from airflow.providers.postgres.operators.postgres import PostgresOperator

with DAG("orders", schedule="@daily") as dag:
    clear = PostgresOperator(task_id="clear", sql="delete from daily_orders where order_date = '{{ ds }}'")
    load = PostgresOperator(
        task_id="load",
        sql="insert into daily_orders select order_date, count(*) from orders where order_date = '{{ ds }}' group by 1",
    )
    clear >> load
