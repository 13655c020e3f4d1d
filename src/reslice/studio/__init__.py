"""The studio: pages on loopback that show the state of every target, and write nothing.

A `view` answers what one page is asked for with plain values; the page and its `.json` twin are both made of them.
`app` says which address is which view, `safety` who may ask, `looking` how a database is opened and let go of.
"""
