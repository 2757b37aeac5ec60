"""What needs a JDK: jars from Maven, the helper JVM, MBeans; its Java classes are in ``src/``."""
