"""``quotahost explain``: says why a client of a running broker goes as fast as it does.

``query`` asks the broker's JVM, ``answer`` reads the lines that come back, ``wording`` puts them into sentences
(``mutations`` those about partition mutations), and ``command`` prints these. Only ``quotahost.cli.main`` imports the
package.
"""
