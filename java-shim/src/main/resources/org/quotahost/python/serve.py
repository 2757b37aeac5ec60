# The shim (Interpreter.java) runs this on its host thread: the Python host runs until the broker closes it.
def _serve():
    try:
        from quotahost.broker.host.bridge import serve

        serve()
    except BaseException:  # a SystemExit that got out would end the broker's process (attach.c)
        import traceback

        # JNI's modified UTF-8 has no room for the rest of Unicode.
        return traceback.format_exc().encode("ascii", "backslashreplace").decode()
    return ""


quotahost_error = _serve()
