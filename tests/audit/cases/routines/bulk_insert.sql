-- dialect: tsql
-- expect: RS101 at 18
CREATE OR ALTER PROCEDURE bronze.load AS
BEGIN
	DECLARE @started DATETIME;
	BEGIN TRY
		SET @started = GETDATE();
		PRINT 'loading';
		TRUNCATE TABLE bronze.orders;
		BULK INSERT bronze.orders
		FROM 'orders.csv'
		WITH (
			FIRSTROW = 2,
			FIELDTERMINATOR = ',',
			TABLOCK
		);
		PRINT 'loaded';
		INSERT INTO silver.daily_orders
		SELECT order_date, COUNT(*) FROM bronze.orders GROUP BY order_date;
	END TRY
	BEGIN CATCH
		PRINT ERROR_MESSAGE();
	END CATCH
END
