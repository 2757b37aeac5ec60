"""``quotahost doctor``: looks at an installation and a properties file before the broker is started.

``command`` gathers the facts: the properties, the interpreter, the folder of Kafka. Every other module is a check,
from some of these facts to findings (:class:`quotahost.cli.console.Finding`). Only ``quotahost.cli.main`` imports the
package, and ``quotahost plugins`` its check of the plugins.
"""
