"""The Python half inside the broker: takes new clients from the shim, asks the plugins, publishes their answers.

Private. ``bridge`` is the only module that knows JPype; everything else talks to Java through the ``Shim`` protocol,
so that it runs without a JVM in tests. From outside, only the shim's ``serve.py`` and the command line import it.
"""
