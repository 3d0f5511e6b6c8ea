"""The options of the daemon and what is refused before a start."""

import io
import json
import os
from contextlib import redirect_stderr
from pathlib import Path

from twisted.application.service import Service
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import ConfigError, LiveOwner, NotConfigured, UnsafeFile
from pitelegram.tap import Options, makeService


class FakeAssembly:
    """Refuses, or builds a plain service; remembers the options."""

    def __init__(self, refusal=None):
        self.refusal = refusal
        self.seen = []

    def check_before_start(self, options):
        """Refuse when told to."""
        if self.refusal is not None:
            raise self.refusal

    def make_daemon(self, options):
        """Build."""
        self.seen.append(options)
        return Service()


class OptionsCase(SynchronousTestCase):
    """Base: an agent directory and a way to parse."""

    def setUp(self):
        """Make the directory."""
        self.agent = Path(self.mktemp()).absolute()
        self.agent.mkdir(mode=0o700, parents=True)
        self.environ = {"HOME": str(self.agent), "PI_CODING_AGENT_DIR": str(self.agent)}

    def configure(self, document):
        """Write C{telegram.json}."""
        path = self.agent / "telegram.json"
        path.write_text(json.dumps(document))
        path.chmod(0o600)

    def parse(self, *words):
        """Return parsed options."""
        options = Options(self.environ)
        options.parseOptions(list(words))
        return options

    def resolved(self, *words):
        """Return what the assembly would get."""
        return self.parse(*words).resolved()

    def refused(self, *words):
        """Return exit code and words of a refusal."""
        err = io.StringIO()
        with redirect_stderr(err), self.assertRaises(SystemExit) as caught:
            self.parse(*words)
        self.assertEqual(err.getvalue().count("\n"), 1)
        return caught.exception.code, err.getvalue()


class PrecedenceTests(OptionsCase):
    """Command line, environment, file, default."""

    CASES = (
        # option, environment, key in the file, three values, default
        (
            "api-root",
            "PI_TELEGRAM_API_ROOT",
            "profiles.default.apiRoot",
            ("http://a:1", "http://b:1", "http://c:1"),
            "https://api.telegram.org",
        ),
        ("pi", "PI_TELEGRAM_PI", "workers.command", ("pi1 -x", "pi2", "pi3"), "pi"),
        (
            "network-family",
            "PI_TELEGRAM_NETWORK_FAMILY",
            "network.family",
            ("ipv4", "ipv6", "ipv4"),
            "auto",
        ),
        (
            "proxy",
            "PI_TELEGRAM_PROXY",
            "network.proxy",
            ("http://a:1", "socks5://b:1", "http://c:1"),
            None,
        ),
        (
            "control-socket",
            "PI_TELEGRAM_CONTROL_SOCKET",
            "control.socket",
            ("/a/s", "/b/s", "/c/s"),
            None,
        ),
        ("log-level", "PI_TELEGRAM_LOG_LEVEL", None, ("debug", "warn", None), "info"),
    )

    def test_each_level(self):
        """Each source wins over those behind it."""
        for option, variable, key, (line, env, file), default in self.CASES:
            name = option.replace("-", "_")
            self.environ.pop(variable, None)
            self.configure({})
            self.assertEqual(self.resolved()[name], default, option)
            if key is not None:
                document = leaf = {}
                *parents, last = key.split(".")
                for part in parents:
                    leaf = leaf.setdefault(part, {})
                leaf[last] = file
                self.configure(document)
                self.assertEqual(self.resolved()[name], file, option)
            self.environ[variable] = env
            self.assertEqual(self.resolved()[name], env, option)
            self.assertEqual(self.resolved(f"--{option}", line)[name], line, option)
            del self.environ[variable]

    def test_roots(self):
        """Roots are lists: repeated, colon-separated, an array, or the home directory."""
        self.assertEqual(self.resolved()["root"], [str(self.agent)])
        self.configure({"workers": {"roots": ["/r1", "/r2"]}})
        self.assertEqual(self.resolved()["root"], ["/r1", "/r2"])
        self.environ["PI_TELEGRAM_ROOTS"] = "/e1:/e2"
        self.assertEqual(self.resolved()["root"], ["/e1", "/e2"])
        self.assertEqual(self.resolved("--root=/c1", "--root", "/c2")["root"], ["/c1", "/c2"])

    def test_place(self):
        """Agent directory and profile."""
        found = self.resolved()
        self.assertEqual((found["agent_dir"], found["profile"]), (str(self.agent), "default"))
        other = Path(self.mktemp()).absolute()
        found = self.resolved("--agent-dir", str(other), "--profile", "work2")
        self.assertEqual((found["agent_dir"], found["profile"]), (str(other), "work2"))
        self.environ["PI_TELEGRAM_PROFILE"] = "env"
        self.assertEqual(self.resolved()["profile"], "env")

    def test_general_proxy_variables(self):
        """C{HTTPS_PROXY} counts after our own variable, and C{NO_PROXY} excludes hosts."""
        self.environ["HTTPS_PROXY"] = "http://general:3128"
        self.assertEqual(self.resolved()["proxy"], "http://general:3128")
        self.environ["NO_PROXY"] = "telegram.org"
        self.assertIsNone(self.resolved()["proxy"])
        self.environ["PI_TELEGRAM_PROXY"] = "socks5://own:1080"
        self.assertEqual(self.resolved()["proxy"], "socks5://own:1080")

    def test_relative_paths(self):
        """Relative paths count from here and are absolute afterwards."""
        found = self.resolved(
            "--root=sub", "--control-socket=x/c.sock", "--pi=./bin/pi --flag", "--agent-dir=agent"
        )
        here = os.getcwd()
        self.assertEqual(found["root"], [f"{here}/sub"])
        self.assertEqual(found["control_socket"], f"{here}/x/c.sock")
        self.assertEqual(found["pi"], f"{here}/bin/pi --flag")
        self.assertEqual(found["agent_dir"], os.path.realpath("agent"))

    def test_resolving_twice(self):
        """What the assembly gets, given as options again, is the same."""
        first = self.resolved("--root=/a b", "--pi='my pi' --x='y z'", "--proxy=http://u:p@h:1")
        words = [f"--root={root}" for root in first["root"]]
        words += [
            f"--{name.replace('_', '-')}={value}"
            for name, value in first.items()
            if name != "root" and value is not None
        ]
        self.assertEqual(self.resolved(*words), first)


class MistakeTests(OptionsCase):
    """Usage errors: exit code 2, one line, the option's name and what is right."""

    def test_mistakes(self):
        """Each malformed value on the command line."""
        for words, name, right in (
            (["--bogus"], "--bogus", "--help"),
            (["--profile", "Main!"], "--profile", "a-z"),
            (["--profile", "main"], "--profile", "main"),
            (["--api-root", "ftp://x"], "--api-root", "https://"),
            (["--pi", "'open"], "--pi", "shell words"),
            (["--proxy", "https://x:1"], "--proxy", "socks5://"),
            (["--network-family", "ipv5"], "--network-family", "ipv4"),
            (["--log-level", "loud"], "--log-level", "debug"),
            (["--socket-group", "users"], "--socket-group", "--control-socket"),
            (["--agent-dir"], "agent-dir", "argument"),
            (["stray"], "stray", "--help"),
        ):
            code, text = self.refused(*words)
            self.assertEqual(code, 2, words)
            self.assertIn(name, text)
            self.assertIn(right, text)

    def test_environment(self):
        """A malformed variable is named too."""
        for name, value in (
            ("PI_TELEGRAM_PROFILE", "a b"),
            ("PI_TELEGRAM_API_ROOT", "nonsense"),
            ("PI_TELEGRAM_ROOTS", "relative"),
            ("PI_TELEGRAM_NETWORK_FAMILY", "x"),
        ):
            self.environ[name] = value
            code, text = self.refused()
            self.assertEqual(code, 2)
            self.assertIn(name, text)
            del self.environ[name]

    def test_file(self):
        """A malformed key of the file is named, and a secret in it is not repeated."""
        self.configure({"network": {"proxy": "https://user:hunter22@x"}})
        code, text = self.refused()
        self.assertEqual(code, 2)
        self.assertIn("proxy", text)
        self.assertNotIn("hunter22", text)


class DamageTests(OptionsCase):
    """An invalid C{telegram.json}."""

    def test_changed_after_the_options_were_read(self):
        """A value that became wrong in between ends with a sentence too."""
        options = self.parse()
        self.configure({"network": {"family": "ipv5"}})
        err = io.StringIO()
        with redirect_stderr(err), self.assertRaises(SystemExit) as caught:
            makeService(options, FakeAssembly())
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("network-family", err.getvalue())

    def test_moved_aside_aloud(self):
        """The operator is told, once, where his configuration went."""
        (self.agent / "telegram.json").write_text("{ broken")
        err = io.StringIO()
        with redirect_stderr(err):
            options = self.parse()
            options.resolved()
        self.assertEqual(err.getvalue().count("telegram.json.invalid-"), 1)
        [aside] = self.agent.glob("telegram.json.invalid-*")
        self.assertEqual(aside.read_text(), "{ broken")


class MakeServiceTests(OptionsCase):
    """C{makeService}."""

    def test_builds(self):
        """The service of the assembly is returned; it got the contract's names."""
        assembly = FakeAssembly()
        service = makeService(self.parse(), assembly)
        self.assertIsInstance(service, Service)
        self.assertEqual(
            set(assembly.seen[0]),
            {
                "agent_dir",
                "profile",
                "api_root",
                "pi",
                "root",
                "proxy",
                "network_family",
                "control_socket",
                "socket_group",
                "log_level",
            },
        )

    def test_pure(self):
        """Nothing is opened and nothing is made."""
        before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
        makeService(self.parse(), FakeAssembly())
        after = set(os.listdir("/proc/self/fd")) if before else set()
        self.assertEqual(len(after), len(before))
        self.assertEqual(os.listdir(self.agent), [])

    def test_exit_codes(self):
        """Each refusal has its exit code and one line of words."""
        for refusal, code in (
            (NotConfigured("no token; run pi-telegram setup"), 3),
            (LiveOwner(4711, "daemon"), 4),
            (ConfigError("a value is wrong"), 2),
            (UnsafeFile("wrong_type", "a link"), 1),
        ):
            err = io.StringIO()
            with redirect_stderr(err), self.assertRaises(SystemExit) as caught:
                makeService(self.parse(), FakeAssembly(refusal))
            self.assertEqual(caught.exception.code, code)
            self.assertEqual(err.getvalue(), f"pi-telegram: {refusal}\n")
