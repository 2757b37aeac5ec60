"""Tests the transport in the broker's own process with a stand-in for JPype."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from quotahost.broker.host.bridge import _InProcess


def test_the_end_of_a_thread_detaches_it_from_the_jvm_and_the_end_of_a_host_detaches_none() -> None:
    """JPype detaches the thread that asks for it. If that thread was calling Java, the broker crashed (JPype 1.7.1)."""
    detached: list[int] = []
    java = SimpleNamespace(call=lambda message: message, detach=lambda: detached.append(threading.get_ident()))
    host = _InProcess(SimpleNamespace(JClass=lambda name: java))
    with ThreadPoolExecutor(1) as pool:  # as in broker_status, whose threads outlive each host
        thread = pool.submit(threading.get_ident).result()
        assert pool.submit(host.ask, b"a").result() == b"a"
        del host
        gc.collect()
        assert not detached
    assert detached == [thread]
