# expect: nothing
from sqlalchemy import create_engine, text


def load(url, start, end):
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("delete from daily_orders where order_date between :start and :end"), {"start": start, "end": end})
        connection.execute(
            text("""
                insert into daily_orders
                select order_date, count(*) from orders where order_date between :start and :end group by order_date
            """),
            {"start": start, "end": end},
        )
