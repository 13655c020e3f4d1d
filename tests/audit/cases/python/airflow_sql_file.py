# expect: nothing
from airflow import DAG
from airflow.providers.postgres.operators.postgres import PostgresOperator

with DAG("orders", schedule="@daily") as dag:
    load = PostgresOperator(task_id="load", sql="sql/daily_orders.sql", parameters={"day": "{{ ds }}"})
