"""Retail orders: the small synthetic example that demo, lab, tests and documentation share.

Two arrays of order events, the SQL pipeline of the example project, a loader, and an oracle in plain Python that
computes every figure of the example without SQL. The data are invented; they are not accounting revenue.
"""
