# expect: RS602 at 10
from datetime import datetime

from airflow.decorators import task
from airflow.providers.postgres.hooks.postgres import PostgresHook


@task
def load():
    day = datetime.now().date()
    hook = PostgresHook("shop")
    hook.run(
        [
            f"delete from daily_orders where order_date = '{day}'",
            f"insert into daily_orders select order_date, count(*) from orders where order_date = '{day}' group by 1",
        ]
    )
