-- the ledger of reslice; who owns what stands here runs it once, and the role that is named can run afterwards

CREATE SCHEMA IF NOT EXISTS "reslice";

GRANT SELECT ON "orders" TO "loader";
