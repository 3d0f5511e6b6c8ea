"""Running plans, with real programs."""

import os
import shlex
import sys
from pathlib import Path

from twisted.internet.defer import CancelledError, gatherResults
from twisted.trial.unittest import SynchronousTestCase, TestCase

from pitelegram.bridge.templates.planning import plan
from pitelegram.bridge.templates.reading import read_template
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.worker.running import AT_ONCE, Failed, Runner
from tests.worker.test_programs import FakeProcesses, Reactor


def python(source, *arguments):
    """Return a command that runs a piece of Python."""
    quoted = [arg.replace("\\", "\\\\").replace('"', '\\"') for arg in (source, *arguments)]
    words = " ".join(f'"{word}"' for word in quoted)
    return f"{sys.executable} -I -S -c {words}"


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    if sys.argv[2] == 'detached' and os.fork():
        os._exit(0)
    with open(sys.argv[1], 'w') as file:
        file.write(str(os.getpid()))
    time.sleep(120)
time.sleep(120)
"""


class RunningTests(TestCase):
    """Plans from templates."""

    def setUp(self):
        """A runner in a directory of its own."""
        from twisted.internet import reactor

        self.reactor = reactor
        self.directory = Path(self.mktemp()).absolute()
        self.directory.mkdir()
        self.runner = Runner(reactor, str(self.directory), dict(os.environ))
        self.addCleanup(self.runner.stop)

    def run_it(self, template, stdin="words", **values):
        """Plan and run a template."""
        step = plan(read_template(template), values, Path("/home/o"), self.directory)
        return self.runner.run(step, stdin)

    async def result(self, template, stdin="words", **values):
        """Return the text of a plan that worked."""
        result = await self.run_it(template, stdin, **values)
        self.assertTrue(result.ok, result)
        return result.text

    async def pid_in(self, name):
        """Wait for a file with a process id."""
        path = self.directory / name
        while not path.exists() or not path.read_text():
            await sleep(self.reactor, 0.02)
        return int(path.read_text())

    @deferred
    async def test_stdin(self):
        """The first program reads the original text."""
        self.assertEqual(await self.result("cat", "ünï\ncödé"), "ünï\ncödé")

    @deferred
    async def test_pipe(self):
        """Each program of a sequence reads what the one before wrote; the last one's is the result."""
        upper = python("import sys; print(sys.stdin.read().upper(), end='')")
        twice = python("import sys; t = sys.stdin.read(); print(t + t)")
        self.assertEqual(await self.result(["cat", upper, twice]), "WORDSWORDS")

    @deferred
    async def test_binary_pipe(self):
        """Bytes between programs stay as they are, a megabyte of them too."""
        make = python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096)")
        count = python(
            "import sys; b = sys.stdin.buffer.read(); print(len(b), b == bytes(range(256)) * 4096)"
        )
        self.assertEqual(await self.result([make, count]), "1048576 True")

    @deferred
    async def test_arguments(self):
        """Hostile values reach the program as one argument each; no shell sees them."""
        show = python("import sys; print(len(sys.argv) - 1, ascii(sys.argv[1:]))")
        hostile = ["a b", "'\"", "$(touch pwned)", "; touch pwned", "a\nb", "`id`", "-rf", "*"]
        for value in hostile:
            shown = f"2 {ascii([value, '--t=' + value])}"
            self.assertEqual(await self.result(show + " {t} --t={t}", t=value), shown)
        self.assertEqual(list(self.directory.iterdir()), [])

    @deferred
    async def test_surroundings(self):
        """A program runs in the project, in a session of its own, with the given environment."""
        source = "import os; print(os.getcwd(), os.getsid(0) == os.getpid(), os.environ['X_TEST'])"
        environment = {"PATH": os.environ["PATH"], "X_TEST": "yes"}
        runner = Runner(self.reactor, str(self.directory), environment)
        step = plan(read_template(python(source)), {}, Path("/home/o"), self.directory)
        result = await runner.run(step, "")
        self.assertEqual(result.text, f"{os.path.realpath(self.directory)} True yes")

    @deferred
    async def test_descriptors(self):
        """A program has its three streams and no other descriptor of ours, inheritable or not."""
        descriptor = os.open("/", os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        os.set_inheritable(descriptor, True)
        source = "import os; print([n for n in range(200) if os.path.exists('/dev/fd/%d' % n)])"
        self.assertEqual(await self.result(python(source)), "[0, 1, 2]")

    @deferred
    async def test_signals(self):
        """Programs begin with the signals' usual meaning: one that writes to a closed pipe ends."""
        result = await self.run_it("sh -c 'kill -PIPE $$; echo alive'")
        self.assertEqual(result.failed[0].words, "signal 13 (SIGPIPE)")

    @deferred
    async def test_exit_code(self):
        """A program that fails gives no output; how it failed is told, with its standard error."""
        result = await self.run_it(
            {"label": "mine", "template": python("print('x'); raise SystemExit('words')")}
        )
        failed = Failed(label="mine", words="exit code 1", errors="words")
        self.assertEqual((result.ok, result.text, result.failed), (False, "", (failed,)))

    @deferred
    async def test_missing(self):
        """A program that is not there, or is none, is told of as such."""
        (self.directory / "file").write_text("no program")
        (self.directory / "odd").write_text("\x7fnot a program")
        (self.directory / "odd").chmod(0o755)
        table = (
            ("no-such-program", "was not found"),
            ("./nope", "was not found"),
            ("./file", "was not found"),
            ("./odd", "cannot start: Exec format error"),
        )
        for template, words in table:
            result = await self.run_it(template)
            self.assertEqual((result.ok, result.failed[0].words), (False, words), template)

    @deferred
    async def test_relative(self):
        """A relative program is the project's."""
        (self.directory / "own").write_text("#!/bin/sh\necho own $1\n")
        (self.directory / "own").chmod(0o755)
        self.assertEqual(await self.result("./own {a}", a="x"), "own x")

    @deferred
    async def test_unread_input(self):
        """A program that does not read its input is no failure, however much there is."""
        self.assertEqual(await self.result("echo done", "x" * 5_000_000), "done")
        closing = python("import os, time; os.close(0); time.sleep(.1); print('closed')")
        self.assertEqual(await self.result(closing, "x" * 5_000_000), "closed")

    @deferred
    async def test_output_bound(self):
        """The result has 12,000 characters and says how many are missing (fault class 94)."""
        result = await self.run_it(python("print('ü' * 12345)"))
        self.assertEqual(result.text, "ü" * 12_000 + "… [truncated 345 chars]")

    @deferred
    async def test_flood(self):
        """A program that writes without end is ended soon, and nothing of it is kept."""
        result = await self.run_it("yes")
        self.assertEqual((result.ok, result.text), (False, ""))
        self.assertEqual(result.failed[0].words, "wrote more than 64 MB")

    @deferred
    async def test_timeout(self):
        """A program that takes too long is terminated, and told of with its limit."""
        begun = self.reactor.seconds()
        result = await self.run_it({"timeout": 200, "template": "sleep 60"})
        self.assertEqual(result.failed[0].words, "took longer than 0.2 s")
        self.assertLess(self.reactor.seconds() - begun, 20)

    @deferred
    async def test_timeout_of_the_stubborn(self):
        """One that ignores SIGTERM is killed with its children, orphans included."""
        commands = [
            {"timeout": 300, "template": python(STUBBORN, name, name)}
            for name in ("child", "detached")
        ]
        result = await self.run_it({"parallel": True, "template": commands})
        self.assertFalse(result.ok)
        self.assertEqual(len(result.failed), 2)
        for name in ("child", "detached"):
            self.assertIsNone(process_birth(await self.pid_in(name)))

    @deferred
    async def test_background(self):
        """A program that leaves another behind, which holds its streams, is over by itself."""
        begun = self.reactor.seconds()
        leave = "import os, sys; print('x'); sys.stdout.flush(); os.fork() or os.execlp('sleep', 'sleep', '40')"
        self.assertEqual(await self.result(python(leave)), "x")
        self.assertLess(self.reactor.seconds() - begun, 20)

    @deferred
    async def test_cancelled(self):
        """Cancelling ends all programs of the plan."""
        write = (
            "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
        )
        running = self.run_it({"parallel": True, "template": [python(write, n) for n in "ab"]})
        pids = [await self.pid_in(name) for name in "ab"]
        running.cancel()
        with self.assertRaises(CancelledError):
            await running
        await self.runner.stop()
        self.assertEqual([process_birth(pid) for pid in pids], [None, None])

    @deferred
    async def test_few_at_once(self):
        """Twenty programs side by side, of two plans, are few at one time."""
        source = (
            "import os, sys, time; n = 'run-' + str(os.getpid()); open(n, 'w').close();"
            "print(len([x for x in os.listdir('.') if x.startswith('run-')]));"
            "time.sleep(.1); os.remove(n)"
        )
        both = [{"parallel": True, "repeat": 10, "template": python(source)}] * 2
        results = await gatherResults([self.run_it(template) for template in both])
        seen = [int(n) for r in results for n in r.text.split("\n") if n.isdigit()]
        self.assertEqual(len(seen), 20)
        self.assertLessEqual(max(seen), AT_ONCE)
        self.assertGreater(max(seen), 1)

    @deferred
    async def test_parallel(self):
        """Branches read the same input; their outputs are joined in order, failures included."""
        template = {
            "parallel": True,
            "template": [
                {"label": "slow", "delay": 100, "template": "cat"},
                "false",
                ["cat", python("import sys; print(sys.stdin.read()[::-1])")],
            ],
        }
        result = await self.run_it(template)
        self.assertTrue(result.ok)
        self.assertEqual(
            result.text,
            "--- branch: slow status: done ---\nwords\n"
            "--- branch: false status: failed ---\nexit code 1\n"
            "--- branch: cat status: done ---\nsdrow",
        )

    @deferred
    async def test_parallel_into_a_program(self):
        """Joined outputs go on to the next step, longer than a result may be."""
        branches = {"parallel": True, "repeat": 2, "template": python("print('x' * 20000)")}
        count = python("import sys; t = sys.stdin.read(); print(t.count('x'), t.count('branch'))")
        self.assertEqual(await self.result([branches, count]), "40000 2")

    @deferred
    async def test_parallel_bound(self):
        """Joined outputs are bounded as one."""
        result = await self.run_it(
            {"parallel": True, "repeat": 2, "template": python("print('x' * 11000)")}
        )
        self.assertTrue(result.text.endswith(" chars]"))
        self.assertLess(len(result.text), 12_040)

    @deferred
    async def test_parallel_all_failed(self):
        """A group of which every branch failed has failed."""
        result = await self.run_it({"parallel": True, "template": ["false", "no-such-program"]})
        self.assertEqual((result.ok, result.text, len(result.failed)), (False, "", 2))

    @deferred
    async def test_continue(self):
        """By default a failed step gives nothing to the next one, which runs."""
        result = await self.run_it(["false", python("import sys; print(repr(sys.stdin.read()))")])
        self.assertEqual((result.ok, result.text, len(result.failed)), (True, "''", 1))

    @deferred
    async def test_branch(self):
        """C{branch} stops the steps around it, and no others."""
        inner = {"failure": "branch", "template": ["false", "touch a"]}
        result = await self.run_it([{**inner, "failure": None, "template": ["echo x"]}, "cat"])
        self.assertEqual(result.text, "x")
        result = await self.run_it({"parallel": True, "template": [inner, "touch b"]})
        self.assertTrue(result.ok)
        self.assertEqual([path.name for path in self.directory.iterdir()], ["b"])

    @deferred
    async def test_branch_within(self):
        """A group that was stopped is a failed step of the group around it, by its own rule."""
        stopped = [{"failure": "branch", "template": "false"}, "touch a"]
        result = await self.run_it([{"failure": "continue", "template": stopped}, "touch b"])
        self.assertTrue(result.ok)
        self.assertEqual([path.name for path in self.directory.iterdir()], ["b"])

    @deferred
    async def test_root(self):
        """C{root} stops everything, branches that run included."""
        deep = ["true", {"failure": "root", "template": "false"}, "touch a"]
        begun = self.reactor.seconds()
        both = {"parallel": True, "template": [deep, "sleep 60"]}
        result = await self.run_it([both, "touch b"])
        self.assertEqual((result.ok, result.text), (False, ""))
        self.assertLess(self.reactor.seconds() - begun, 20)
        self.assertEqual(list(self.directory.iterdir()), [])

    @deferred
    async def test_root_at_once(self):
        """What has not begun when everything is stopped does not begin."""
        template = [{"failure": "root", "template": "no-such-program"}, "touch a"]
        result = await self.run_it({"parallel": True, "template": template})
        self.assertFalse(result.ok)
        self.assertEqual(list(self.directory.iterdir()), [])

    COUNTING = python(
        "import os, sys; n = len(os.listdir('.')); open(str(n), 'w').close();"
        "print('attempt', n + 1); sys.exit(n + 1 < int(sys.argv[1]))",
        "{works}",
    )

    @deferred
    async def test_retry(self):
        """C{retry} counts the first attempt; the first that works ends it."""
        template = {"retry": 3, "template": self.COUNTING}
        result = await self.run_it(template, works=2)
        self.assertEqual((result.text, len(result.failed)), ("attempt 2", 1))
        result = await self.run_it(template, works=9)
        self.assertEqual((result.ok, len(result.failed)), (False, 3))

    @deferred
    async def test_retry_of_a_group(self):
        """A whole group is tried again when it fails, even by a step that stops everything."""
        for rule in ("branch", "root"):
            for path in self.directory.iterdir():
                path.unlink()
            group = {"retry": 3, "failure": rule, "template": ["cat", self.COUNTING]}
            self.assertEqual(await self.result(group, works=3), "attempt 3")

    @deferred
    async def test_recover(self):
        """C{recover} runs between attempts, not after the last; when it fails there is no further."""
        mend = python("import os; open(str(len(os.listdir('.'))), 'w').close()")
        template = {"retry": 4, "recover": mend, "template": self.COUNTING}
        self.assertEqual(await self.result(template, works=3), "attempt 3")
        for path in self.directory.iterdir():
            path.unlink()
        template["recover"] = "false"
        result = await self.run_it(template, works=9)
        self.assertEqual([failed.label for failed in result.failed][1:], ["false"])

    @deferred
    async def test_delay(self):
        """C{delay} waits before the program, and never longer than its limit."""
        begun = self.reactor.seconds()
        self.assertEqual(await self.result({"delay": 200, "template": "echo x"}), "x")
        self.assertGreater(self.reactor.seconds() - begun, 0.19)
        await self.run_it({"delay": 60_000, "timeout": 300, "template": "echo x"})
        self.assertLess(self.reactor.seconds() - begun, 20)

    @deferred
    async def test_output(self):
        """C{output} names the value that is the result, if the program works."""
        template = {"output": "ogg", "template": "echo {ogg}x"}
        self.assertEqual(await self.result(template, ogg="/tmp/o.ogg"), "/tmp/o.ogg")
        result = await self.run_it({"output": "ogg", "template": "false"}, ogg="/tmp/o.ogg")
        self.assertEqual(result.text, "")

    def test_shell_words(self):
        """(The helper of these tests quotes as the language reads.)"""
        self.assertEqual(shlex.split(python('a "b" \\c'))[-1], 'a "b" \\c')


class LimitTests(SynchronousTestCase):
    """Limits of steps within one another, under a clock."""

    def setUp(self):
        """A runner with processes in memory."""
        self.reactor = Reactor()
        self.processes = FakeProcesses(self.reactor)
        environment = {"PATH": os.environ["PATH"]}
        self.runner = Runner(self.reactor, "/", environment, self.processes, at_once=2)

    def run_it(self, template):
        """Begin to run a template."""
        return self.runner.run(plan(read_template(template), {}, Path("/"), Path("/")), "")

    def finish(self):
        """The newest program ends well."""
        self.reactor.processes[-1].exit()

    def test_first_step(self):
        """The first step has the whole limit, whatever went before it (fault class 96)."""
        running = self.run_it(
            {
                "timeout": 10_000,
                "failure": "branch",
                "template": [{"delay": 9000, "template": "cat"}],
            }
        )
        self.reactor.advance(9)
        self.assertEqual(len(self.reactor.processes), 1)
        self.reactor.advance(9.9)
        self.assertNoResult(running)
        self.reactor.advance(0.1)
        self.assertEqual(self.successResultOf(running).failed[0].words, "took longer than 10 s")

    def test_next_step(self):
        """What a step took is missing to the next one, whose own limit counts if it is shorter."""
        running = self.run_it(
            {"timeout": 10_000, "template": ["cat", {"timeout": 60_000, "template": "rev"}]}
        )
        self.reactor.advance(7)
        self.finish()
        self.reactor.advance(3)
        self.assertEqual(self.successResultOf(running).failed[0].words, "took longer than 3 s")
        running = self.run_it(
            {"timeout": 10_000, "template": ["cat", {"timeout": 1000, "template": "rev"}]}
        )
        self.reactor.advance(7)
        self.finish()
        self.reactor.advance(1)
        self.assertEqual(self.successResultOf(running).failed[0].words, "took longer than 1 s")

    def test_no_time_left(self):
        """A step whose turn comes too late is not started."""
        running = self.run_it({"timeout": 10_000, "template": ["cat", "rev"]})
        self.reactor.advance(10)
        failed = self.successResultOf(running).failed
        self.assertEqual(
            [each.words for each in failed], ["took longer than 10 s", "had no time left"]
        )
        self.assertEqual(len(self.reactor.processes), 1)

    def test_each_attempt(self):
        """Each attempt has its own limit, within that of the steps around it."""
        inner = {"timeout": 4000, "retry": 5, "template": "cat"}
        running = self.run_it({"timeout": 10_000, "template": [inner]})
        for seconds in (4, 4, 2):
            self.assertNoResult(running)
            self.reactor.advance(seconds)
        words = [each.words for each in self.successResultOf(running).failed]
        limits = [f"took longer than {seconds} s" for seconds in (4, 4, 2)]
        self.assertEqual(words, [*limits, "had no time left", "had no time left"])

    def test_waiting_is_not_running(self):
        """Waiting for a place among those that run does not count."""
        one = {"timeout": 10_000, "template": "cat"}
        running = self.run_it({"parallel": True, "template": [one] * 4})
        self.assertEqual(len(self.reactor.processes), 2)
        self.reactor.advance(9)
        for process in self.reactor.processes[:2]:
            process.exit()
        self.assertEqual(len(self.reactor.processes), 4)
        self.reactor.advance(9)
        for process in self.reactor.processes[2:]:
            process.exit()
        self.assertEqual(self.successResultOf(running).failed, ())

    def test_cancelled_while_waiting(self):
        """Cancelling frees the places, and nothing that waited begins."""
        running = self.run_it({"parallel": True, "repeat": 4, "template": "cat"})
        running.cancel()
        self.failureResultOf(running, CancelledError)
        self.assertEqual(len(self.reactor.processes), 2)
        other = self.run_it({"parallel": True, "repeat": 2, "template": "cat"})
        for process in self.reactor.processes[2:]:
            process.exit()
        self.assertTrue(self.successResultOf(other).ok)
