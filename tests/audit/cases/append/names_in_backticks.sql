-- dialect: bigquery
-- expect: RS101 at 3
insert into `shop-project.mart.daily-orders` (d, n) select d, count(*) from `shop-project.raw.orders` group by d;
