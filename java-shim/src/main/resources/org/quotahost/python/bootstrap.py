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

        # jpype.startJVM() can only start a new JVM: this library (attach.c) hands JPype the running JVM.
        # ignoreUnrecognized, convertStrings, interrupt (Python gets no signals), temporary file
        _jpype.startup({library}, (), True, False, True, None)
        jpype._core.initializeResources()
    except BaseException:  # an uncaught SystemExit would end the broker (attach.c)
        import traceback

        # JNI uses modified UTF-8, so the text must be ASCII.
        return traceback.format_exc().encode("ascii", "backslashreplace").decode()
    return ""


quotahost_error = _boot()
