# The shim (Interpreter.java) runs this on its host thread. The Python host runs until the broker closes it.
def _serve():
    try:
        from quotahost.broker.host.bridge import serve

        serve()
    except BaseException:  # an uncaught SystemExit would end the broker (attach.c)
        import traceback

        # JNI uses modified UTF-8, so the text must be ASCII.
        return traceback.format_exc().encode("ascii", "backslashreplace").decode()
    return ""


quotahost_error = _serve()
