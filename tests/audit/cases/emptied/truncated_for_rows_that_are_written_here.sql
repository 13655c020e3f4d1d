-- dialect: snowflake
-- expect: note RS204 at 3
truncate table channels;
insert into channels (channel_id, name) values (1, 'web'), (2, 'shop');
