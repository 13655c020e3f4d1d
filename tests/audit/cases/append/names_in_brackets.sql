-- dialect: tsql
-- expect: RS101 at 3
insert into [dbo].[Daily Orders] ([Order Date], [n]) select [Order Date], count(*) from [dbo].[Orders] group by [Order Date];
