"""The command line as text."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

from twisted.trial.unittest import SynchronousTestCase

from pitelegram import cli
from pitelegram.commands import parser as parsers

COMMANDS = (
    "setup",
    "run",
    "start",
    "stop",
    "restart",
    "status",
    "logs",
    "doctor",
    "sandbox",
    "demo",
    "command",
    "workers list",
    "workers start",
    "workers stop",
    "workers restart",
    "workers forget",
    "workers prompt",
    "workers steer",
    "workers abort",
    "workers clear-queue",
    "workers compact",
    "workers new-session",
    "workers switch-session",
    "workers set-model",
    "workers set-thinking",
    "workers answer",
    "workers state",
    "outbox inspect",
    "outbox retry",
)


def call(*argv):
    """Run C{main} in this process; returns exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = cli.main(list(argv))
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


class ParserTests(SynchronousTestCase):
    """Help and usage errors."""

    def test_session_that_looks_like_an_option(self):
        """A session file is taken as Pi names it, which begins like an option, wherever it stands."""
        for session in (
            "--home-me-project--/2026_x.jsonl",
            "--tmp-a=b c--/x.jsonl",
            "plain/x.jsonl",
        ):
            command = ["workers", "switch-session", "alpha", session, "--json"]
            for words in (command, [*command[:3], "--request-id", "r", "--dry-run", session]):
                args = parsers.build().parse_args(parsers.in_order(words))
                self.assertEqual((args.name, args.session_ref), ("alpha", session))
            self.assertTrue(args.dry_run)
            self.assertEqual(args.request_id, "r")
        marked = ["workers", "switch-session", "--json", "--", "alpha", "--a--/x.jsonl"]
        args = parsers.build().parse_args(parsers.in_order(marked))
        self.assertEqual((args.name, args.session_ref, args.json), ("alpha", "--a--/x.jsonl", True))

    def test_no_arguments(self):
        """Without arguments the help says how to start, and that is no error."""
        code, out, _ = call()
        self.assertEqual(code, 0)
        for words in ("pi-telegram setup", "pi-telegram start", "pi-telegram demo"):
            self.assertIn(words, out)

    def test_help_everywhere(self):
        """Every command explains itself."""
        for command in COMMANDS:
            code, out, _ = call(*command.split(), "--help")
            self.assertEqual(code, 0, command)
            self.assertIn(f"usage: pi-telegram {command}", out)

    def test_version(self):
        """The version is that of the installation."""
        code, out, _ = call("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"\Api-telegram \d+\.\d+")

    def test_unknown(self):
        """Unknown commands and options are usage errors that name them."""
        for argv, word in (
            (("nonsense",), "nonsense"),
            (("status", "--nonsense"), "--nonsense"),
            (("run", "--root"), "--root"),
            (("workers", "stop"), "NAME"),
            (("workers", "answer", "a", "d"), "--option"),
            (("command",), "--stdin"),
            (("logs", "-n", "x"), "-n"),
        ):
            code, out, err = call(*argv)
            self.assertEqual((code, out), (2, ""), argv)
            self.assertIn(word, err)
            self.assertIn("--help", err)

    def test_no_abbreviations(self):
        """Options are not guessed from their beginning."""
        self.assertEqual(call("status", "--js")[0], 2)

    def test_groups_without_command(self):
        """A group alone shows its commands, as an error."""
        for group in ("workers", "outbox"):
            code, out, _ = call(group)
            self.assertEqual(code, 2)
            self.assertIn("usage: pi-telegram " + group, out)

    def test_common_options_anywhere(self):
        """Agent directory and profile may stand before or after the command."""
        parser = parsers.build()
        for argv in (
            ["--profile", "work", "status"],
            ["status", "--profile", "work"],
            ["--profile", "other", "workers", "list", "--profile", "work"],
        ):
            self.assertEqual(parser.parse_args(argv).profile, "work")
        self.assertFalse(hasattr(parser.parse_args(["status"]), "profile"))

    def test_version_anywhere(self):
        """Every command tells the version."""
        for command in ("", *COMMANDS):
            code, out, _ = call(*command.split(), "--version")
            self.assertEqual((code, out.split()[0]), (0, "pi-telegram"), command)

    def test_handlers_exist(self):
        """Every command has a function behind it."""
        import importlib

        parser = parsers.build()
        samples = {
            "workers start": ["d"],
            "workers prompt": ["n", "t"],
            "workers steer": ["n", "t"],
            "workers switch-session": ["n", "s"],
            "workers set-model": ["n", "p/m"],
            "workers set-thinking": ["n", "high"],
            "workers answer": ["n", "d", "--cancel"],
            "outbox retry": ["k"],
            "command": ["--stdin"],
            **{
                f"workers {name}": ["n"]
                for name in (
                    "stop",
                    "restart",
                    "forget",
                    "abort",
                    "clear-queue",
                    "compact",
                    "new-session",
                    "state",
                )
            },
        }
        for command in COMMANDS:
            args = parser.parse_args([*command.split(), *samples.get(command, [])])
            module, _, name = args.handler.partition(":")
            self.assertTrue(callable(getattr(importlib.import_module(module), name)), command)

    def test_cures_name_the_place(self):
        """A command that is advised is about the profile and the directory of the one given."""
        from pitelegram.commands.place import command_line

        def advised(*words):
            return command_line(parsers.build().parse_args([*words]), "stop")

        self.assertEqual(advised("status"), "pi-telegram stop")
        self.assertEqual(advised("--profile", "two", "status"), "pi-telegram stop --profile two")
        self.assertEqual(
            advised("status", "--agent-dir", "/a b"), "pi-telegram stop --agent-dir '/a b'"
        )

    def test_help_is_light(self):
        """Showing help imports neither Twisted nor anything else that is slow."""
        import subprocess

        code = (
            "import sys; from pitelegram import cli; cli.main([]);"
            "heavy = {'twisted', 'treq', 'psutil', 'orjson', 'attrs'} & set(sys.modules);"
            "sys.exit(repr(heavy) if heavy else 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
