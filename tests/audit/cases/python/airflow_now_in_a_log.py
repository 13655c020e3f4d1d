# expect: nothing
from datetime import datetime

from airflow.decorators import task
from airflow.providers.postgres.hooks.postgres import PostgresHook


@task
def load(ds=None):
    began = datetime.now()
    PostgresHook("shop").run(f"delete from daily_orders where order_date = '{ds}'")
    print("took", datetime.now() - began)
