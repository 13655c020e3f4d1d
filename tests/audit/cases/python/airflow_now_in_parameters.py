# expect: RS602 at 11
import pendulum
from airflow.decorators import task
from airflow.providers.postgres.hooks.postgres import PostgresHook


@task
def load():
    with PostgresHook("shop").get_conn() as connection, connection.cursor() as cursor:
        cursor.execute(
            "delete from daily_orders where order_date = %(day)s", {"day": pendulum.today().to_date_string()}
        )
