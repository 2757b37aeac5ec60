# The shim (Interpreter.java) runs this once inside the broker, right after libpython has started, to start JPype.
# It is a template: the words in braces are replaced by Python literals.
def _boot():
    import sys

    try:
        # Imports come from the environment of python.executable: probe.py has printed the path of that interpreter.
        sys.path[:] = {path}.split("\n")
        sys.executable = {executable}
        sys.argv = ["quotahost"]
        import _jpype
        import jpype._core

        # Not jpype.startJVM(), which can only start a JVM: this library (attach.c) hands JPype the JVM that runs.
        # ignoreUnrecognized, convertStrings, interrupt (signals stay the JVM's), temporary file
        _jpype.startup({library}, (), True, False, True, None)
        jpype._core.initializeResources()
    except BaseException:  # a SystemExit that got out would end the broker's process (attach.c)
        import traceback

        # JNI's modified UTF-8 has no room for the rest of Unicode.
        return traceback.format_exc().encode("ascii", "backslashreplace").decode()
    return ""


quotahost_error = _boot()
