"""The Python half inside the broker: takes new clients from the shim, asks the plugins, publishes their answers.

Private. From outside, only the shim's scripts and the command line import it. Begin with ``loop``. Tests need no JVM:
``tests.fakes.shim`` stands in for Java.
"""
