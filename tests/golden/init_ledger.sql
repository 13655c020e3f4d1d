-- the ledger of reslice; DuckDB has no grants: who may write the file may write the ledger

CREATE SCHEMA reslice;

CREATE TABLE reslice.runs (id VARCHAR);
