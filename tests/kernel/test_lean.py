"""Starting small: which OpenSSL a process carries, and when garbage is collected."""

import gc
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel import lean

ROOT = Path(__file__).resolve().parent.parent.parent

DAEMON = """
import sys
from pitelegram.kernel.lean import forbid_second_openssl
forbid_second_openssl()
import pitelegram.assembly, twisted.internet.reactor, hashlib, hmac
assert "OpenSSL.SSL" in sys.modules, "the daemon speaks TLS"
assert not {"ssl", "_ssl", "_hashlib"} & set(sys.modules), "a second OpenSSL"
assert hmac.new(b"k", b"m", "sha256").digest() == hmac.new(b"k", b"m", hashlib.sha256).digest()
"""

WORKER = """
import sys
from pitelegram.kernel.lean import forbid_tls
forbid_tls()
import pitelegram.worker.managed, twisted.internet.reactor
carried = {"OpenSSL", "cryptography", "service_identity", "ssl", "_ssl", "_hashlib"}
assert not carried & set(sys.modules), "an OpenSSL in a worker"
"""

TLS = """
import sys
from pitelegram.kernel.lean import forbid_second_openssl
forbid_second_openssl()
from twisted.scripts.trial import run
sys.argv = ["trial", "--temp-directory", sys.argv[1], "tests.botapi.test_network.TlsTests"]
try:
    run()
finally:
    assert "ssl" not in sys.modules
"""


class LeanTests(SynchronousTestCase):
    """Each in a process of its own, since imports cannot be taken back."""

    def passes(self, program: str, *arguments: str) -> None:
        """Run a program to a good end."""
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_daemon(self):
        """The daemon's modules need no other OpenSSL than pyOpenSSL's."""
        self.passes(DAEMON)

    def test_worker(self):
        """A worker's modules need none."""
        self.passes(WORKER)

    def test_tls(self):
        """TLS, with its checks of names and certificates, works without the standard library's."""
        self.passes(TLS, str(Path(self.mktemp()).resolve()))


class GarbageTests(SynchronousTestCase):
    """Collections while a process starts."""

    def test_start(self):
        """Nothing is collected between begin and end; then what was made before is left alone."""
        self.addCleanup(gc.unfreeze)
        self.addCleanup(gc.enable)
        lean.begin_start()
        self.assertFalse(gc.isenabled())
        lean.end_start()
        self.assertTrue(gc.isenabled())
        self.assertGreater(gc.get_freeze_count(), 1000)
