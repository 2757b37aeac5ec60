"""All parts that need a JDK: Kafka's jars from Maven, the helper JVM, and the MBeans of nodes.

``src/`` holds the harness's own Java classes, which ``jdk`` compiles on first use.
"""
