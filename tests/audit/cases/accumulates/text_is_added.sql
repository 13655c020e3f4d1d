-- dialect: mysql
-- expect: RS103 at 4
insert into notes (order_date, words) select order_date, group_concat(word) from remarks group by order_date
on duplicate key update words = concat(words, ',', values(words));
