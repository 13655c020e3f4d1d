# expect: RS101 at 12
from airflow import DAG
from airflow.providers.google.cloud.operators.bigquery import BigQueryInsertJobOperator

with DAG("orders", schedule="@daily") as dag:
    load = BigQueryInsertJobOperator(
        task_id="load",
        configuration={
            "query": {
                "useLegacySql": False,
                "query": """
                    insert into shop.daily_orders
                    select order_date, count(*) from shop.orders where order_date = '{{ ds }}' group by 1
                """,
            }
        },
    )
