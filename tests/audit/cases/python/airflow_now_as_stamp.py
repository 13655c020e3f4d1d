# expect: nothing
from datetime import datetime, timezone

from airflow.decorators import task
from airflow.providers.postgres.hooks.postgres import PostgresHook


@task
def load(ds=None):
    loaded_at = datetime.now(timezone.utc)
    with PostgresHook("shop").get_conn() as connection, connection.cursor() as cursor:
        cursor.execute("delete from daily_orders where order_date = %(day)s", {"day": ds})
        cursor.execute(
            "insert into daily_orders select order_date, count(*), %(loaded_at)s from orders"
            " where order_date = %(day)s group by order_date",
            {"day": ds, "loaded_at": loaded_at},
        )
