# The shim (Interpreter.java) runs this once inside the broker, right after libpython has started, to start JPype.
# It is a template: the words in braces are replaced by Python literals.
def _boot():
    import sys

    try:
        sys.path[:] = {path}
        sys.executable = {executable}
        sys.argv = ["quotahost"]
        import _jpype
        import jpype._core

        # ignoreUnrecognized, convertStrings, interrupt (signals stay the JVM's), temporary file
        _jpype.startup({library}, (), True, False, True, None)
        jpype._core.initializeResources()
    except BaseException:
        import traceback

        # JNI's modified UTF-8 has no room for the rest of Unicode.
        return traceback.format_exc().encode("ascii", "backslashreplace").decode()
    return ""


quotahost_error = _boot()
