# expect: RS101 at 6, RS101 at 14
from airflow.providers.google.cloud.operators.bigquery import BigQueryExecuteQueryOperator, BigQueryInsertJobOperator

appended = BigQueryExecuteQueryOperator(
    task_id="appended",
    sql="SELECT order_date, COUNT(*) AS n FROM shop.orders WHERE order_date = '{{ ds }}' GROUP BY order_date",
    destination_dataset_table="shop.daily_orders",
    write_disposition="WRITE_APPEND",
)
configured = BigQueryInsertJobOperator(
    task_id="configured",
    configuration={
        "query": {
            "query": "SELECT order_date, COUNT(*) AS n FROM shop.orders WHERE order_date = '{{ ds }}' GROUP BY order_date",
            "destinationTable": {"projectId": "p", "datasetId": "shop", "tableId": "daily_totals"},
            "writeDisposition": "WRITE_APPEND",
        }
    },
)
one_partition = BigQueryExecuteQueryOperator(
    task_id="one_partition",
    sql="SELECT order_date, COUNT(*) AS n FROM shop.orders WHERE order_date = '{{ ds }}' GROUP BY order_date",
    destination_dataset_table="shop.daily_orders${{ ds_nodash }}",
    write_disposition="WRITE_TRUNCATE",
)
whole = BigQueryExecuteQueryOperator(
    task_id="whole",
    sql="SELECT order_date, COUNT(*) AS n FROM shop.orders GROUP BY order_date",
    destination_dataset_table="shop.all_orders",
    write_disposition="WRITE_TRUNCATE",
)
rows = BigQueryExecuteQueryOperator(
    task_id="rows",
    sql="SELECT order_id, order_date FROM shop.orders WHERE order_date = '{{ ds }}'",
    destination_dataset_table="shop.order_log",
    write_disposition="WRITE_APPEND",
)
