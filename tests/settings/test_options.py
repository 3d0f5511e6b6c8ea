"""Options: the strongest source wins, and a malformed value names itself."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import ConfigError, UsageError
from pitelegram.settings.model import Settings
from pitelegram.settings.names import is_profile_name
from pitelegram.settings.options import bypasses_proxy, resolve_options, resolve_paths


class PathsTests(SynchronousTestCase):
    """L{resolve_paths}."""

    def test_precedence(self) -> None:
        """Command line, then environment, then default."""
        environ = {"PI_CODING_AGENT_DIR": "/env", "PI_TELEGRAM_PROFILE": "env"}
        paths = resolve_paths({"agent-dir": "/line", "profile": "line"}, environ)
        self.assertEqual((str(paths.agent_dir), paths.profile), ("/line", "line"))
        paths = resolve_paths({}, environ)
        self.assertEqual((str(paths.agent_dir), paths.profile), ("/env", "env"))
        paths = resolve_paths({}, {})
        self.assertEqual(paths.profile, "default")
        self.assertEqual(paths.agent_dir, Path(os.path.realpath(os.path.expanduser("~/.pi/agent"))))

    def test_profile_names(self) -> None:
        """The grammar, and who is named when it is broken."""
        for name in ("main", "active", "", "A", "a-b", "x" * 33, "a\n", "ü", None):
            self.assertFalse(is_profile_name(name), name)
        self.assertTrue(is_profile_name("a" * 32))
        error = self.assertRaises(UsageError, resolve_paths, {"profile": "No"}, {})
        self.assertIn("--profile", str(error))
        for given in ({"profile": ""}, {"agent-dir": ""}, {"agent-dir": "a\0"}):
            self.assertRaises(UsageError, resolve_paths, given, {})
        error = self.assertRaises(UsageError, resolve_paths, {}, {"PI_TELEGRAM_PROFILE": "main"})
        self.assertIn("PI_TELEGRAM_PROFILE", str(error))


class OptionsTests(SynchronousTestCase):
    """L{resolve_options}."""

    def test_defaults(self) -> None:
        """What nobody set."""
        run = resolve_options({}, {"HOME": "/home/me"}, Settings(profile="default"))
        self.assertEqual(run.api_root, "https://api.telegram.org")
        self.assertEqual((run.pi_command, run.roots), (("pi",), (Path("/home/me"),)))
        self.assertEqual((run.proxy, run.network_family, run.log_level), (None, "auto", "info"))
        self.assertEqual((run.control_socket, run.socket_group), (None, None))

    def test_precedence(self) -> None:
        """Each source in its order, for every option that has all three."""
        settings = Settings(
            profile="default",
            api_root="http://file",
            workers_command="pi file",
            workers_roots=("/file",),
            network_proxy="http://file:1",
            network_family="ipv4",
            control_socket="/file.sock",
            control_socket_group="file",
        )
        environ = {
            "PI_TELEGRAM_API_ROOT": "http://env/",
            "PI_TELEGRAM_PI": "pi env",
            "PI_TELEGRAM_ROOTS": "/env:/env2",
            "PI_TELEGRAM_PROXY": "http://env:1",
            "PI_TELEGRAM_NETWORK_FAMILY": "ipv6",
            "PI_TELEGRAM_CONTROL_SOCKET": "/env.sock",
            "PI_TELEGRAM_SOCKET_GROUP": "env",
            "PI_TELEGRAM_LOG_LEVEL": "debug",
        }
        line = {
            "api-root": "http://line",
            "pi": "'pi x' line",
            "root": ["/line"],
            "proxy": "socks5://line:1",
            "network-family": "auto",
            "control-socket": "/line.sock",
            "socket-group": "line",
            "log-level": "warn",
        }
        run = resolve_options({}, {}, settings)
        self.assertEqual((run.api_root, run.pi_command), ("http://file", ("pi", "file")))
        self.assertEqual((run.roots, run.proxy), ((Path("/file"),), "http://file:1"))
        self.assertEqual((run.network_family, run.socket_group), ("ipv4", "file"))
        run = resolve_options({}, environ, settings)
        self.assertEqual((run.api_root, run.pi_command), ("http://env", ("pi", "env")))
        self.assertEqual(run.roots, (Path("/env"), Path("/env2")))
        self.assertEqual((run.proxy, run.network_family), ("http://env:1", "ipv6"))
        self.assertEqual((run.control_socket, run.log_level), (Path("/env.sock"), "debug"))
        run = resolve_options(line, environ, settings)
        self.assertEqual((run.api_root, run.pi_command), ("http://line", ("pi x", "line")))
        self.assertEqual((run.roots, run.proxy), ((Path("/line"),), "socks5://line:1"))
        self.assertEqual((run.control_socket, run.socket_group), (Path("/line.sock"), "line"))
        self.assertEqual((run.network_family, run.log_level), ("auto", "warn"))

    def test_malformed(self) -> None:
        """The message names the option and what would be right; the file's are no usage errors."""
        plain = Settings(profile="default")
        for options, environ, name in (
            ({"api-root": "ftp://x"}, {}, "--api-root"),
            ({"api-root": "https://u:p@x"}, {}, "--api-root"),
            ({"api-root": "https://"}, {}, "--api-root"),
            ({"api-root": "https://x:port"}, {}, "--api-root"),
            ({"pi": "'open"}, {}, "--pi"),
            ({"proxy": "https://x:1"}, {}, "--proxy"),
            ({"network-family": "ipv5"}, {}, "--network-family"),
            ({"log-level": "loud"}, {}, "--log-level"),
            ({"socket-group": "g"}, {}, "--socket-group"),
            *(
                ({name: ""}, {}, f"--{name}")
                for name in ("api-root", "pi", "proxy", "network-family", "log-level")
            ),
            ({"control-socket": ""}, {}, "--control-socket"),
            ({"control-socket": "/c", "socket-group": ""}, {}, "--socket-group"),
            ({"root": [""]}, {}, "--root"),
            ({}, {"PI_TELEGRAM_ROOTS": "relative"}, "PI_TELEGRAM_ROOTS"),
            ({}, {"PI_TELEGRAM_NETWORK_FAMILY": "x"}, "PI_TELEGRAM_NETWORK_FAMILY"),
        ):
            error = self.assertRaises(UsageError, resolve_options, options, environ, plain)
            self.assertIn(name, str(error))
        wrong = Settings(profile="default", network_family="ipv5")
        error = self.assertRaises(ConfigError, resolve_options, {}, {}, wrong)
        self.assertNotIsInstance(error, UsageError)

    def test_common_proxy_variables(self) -> None:
        """HTTPS_PROXY counts unless NO_PROXY excludes the host; our own variable always counts."""
        plain = Settings(profile="default", network_proxy="http://file:1")
        environ = {"https_proxy": "http://common:1"}
        self.assertEqual(resolve_options({}, environ, plain).proxy, "http://common:1")
        environ["NO_PROXY"] = "telegram.org"
        self.assertIsNone(resolve_options({}, environ, plain).proxy)
        environ["PI_TELEGRAM_PROXY"] = "http://own:1"
        self.assertEqual(resolve_options({}, environ, plain).proxy, "http://own:1")

    def test_no_proxy(self) -> None:
        """Names, suffixes, ports and the star."""
        url = "https://api.telegram.org"
        for entry in (
            "*",
            "telegram.org",
            ".telegram.org",
            "API.telegram.org:443",
            "x, telegram.org",
        ):
            self.assertTrue(bypasses_proxy(url, entry), entry)
        for entry in ("", "gram.org", "api.telegram.org:80", "telegram.org.evil"):
            self.assertFalse(bypasses_proxy(url, entry), entry)
        self.assertTrue(bypasses_proxy("http://[::1]:80", "[::1]"))
