"""Lets trial's test cases run under pytest beside tests of pytest-twisted.

Once pytest-twisted runs the reactor, in a greenlet, trial must not run it a second time: it waits
through pytest-twisted instead.
"""

import os
import tempfile

import pytest_twisted
from twisted.trial.unittest import TestCase

_wait_by_trial = TestCase._wait


def _wait(self, waiting, running=[]):  # noqa: B006 - the signature of trial's own
    from twisted.internet import reactor

    if not reactor.running:
        return _wait_by_trial(self, waiting)
    if not waiting.called or waiting.result is not None:
        pytest_twisted.blockon(waiting)
    return None


TestCase._wait = _wait


def pytest_collection_finish(session):
    """Work in a scratch directory, as trial does: C{mktemp} is relative to it."""
    scratch = tempfile.TemporaryDirectory(prefix="pi-telegram-pytest-")
    os.chdir(scratch.name)
    session.config.add_cleanup(scratch.cleanup)
    session.config.add_cleanup(lambda: os.chdir("/"))
