"""Commands that show menus, change Pi, or are Pi's own templates."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.bridge import labels
from pitelegram.bridge.menus import compact, sessions, thinking
from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import sleep
from pitelegram.testing.pihost import FakePiHost
from pitelegram.testing.worker import CHAT
from tests.worker.menusupport import MenuCase

LISTED = {
    "commands": [
        {"name": "mcp", "source": "extension", "description": "MCP"},
        {"name": "fix-it", "source": "prompt", "description": "Mends"},
        {"name": "skill:deep", "source": "skill"},
        {"name": "model", "source": "prompt"},
    ]
}


class Changing(MenuCase):
    """C{/model}, C{/thinking}, C{/new}, C{/compact}."""

    def test_model(self) -> None:
        """In full or by its id; what is not clear is asked back."""
        rig = self.begin()
        for text, told in (
            ("/model scripted/OTHER<b>", "🤖 Model: scripted/other<b>"),
            ("/model@bot other<b>", "🤖 Model: scripted/other<b>"),
            ("/MODEL scripted/scripted", "🤖 Model: scripted/scripted"),
            ("/model scripted", "“scripted” could be any of these"),
            ("/model nothing", "There is no model “nothing” here."),
        ):
            rig.message(text)
            self.assertTrue(rig.link.texts[-1].startswith(told), rig.link.texts[-1])
        rig.message("[[gate a]]")
        rig.message("/model other<b>")
        self.assertIn("Pi goes on with it after the current step.", rig.link.texts[-1])
        rig.host._change(isCompacting=True)
        rig.message("/model other<b>")
        self.assertIn("Command failed. Pi is compacting", rig.link.texts[-1])

    def test_thinking(self) -> None:
        """A level of the model, in any case."""
        rig = self.begin()
        rig.message("/thinking HIGH")
        self.assertEqual(rig.link.texts, ["Thinking: high"])
        self.assertEqual(rig.host.state["thinkingLevel"], "high")
        rig.message("/thinking max")
        self.assertIn("is none of: off, low, high", rig.link.texts[-1])
        rig.host.results["get_available_thinking_levels"] = {"levels": ["off"]}
        rig.message("/thinking off")
        self.assertEqual(rig.link.texts[-1], thinking.NO_CONTROLS)

    def test_new(self) -> None:
        """At once while there is nothing to do; else it asks."""
        rig = self.begin()
        rig.message("/new")
        self.assertEqual(rig.link.texts, [sessions.NEW])
        rig.message("[[gate a]]")
        rig.message("/new")
        self.assertIn("Start a new session?", self.shown()["text"])
        self.assertEqual([n for n, _ in rig.host.commands if n == "new_session"], ["new_session"])

    def test_compact_while_busy(self) -> None:
        """It is refused in words, while Pi works and while prompts wait."""
        rig = self.begin()
        rig.message("[[gate a]]")
        rig.message("/compact")
        self.assertEqual(rig.link.texts, [compact.BUSY])
        self.assertEqual(self.calls("sendMessage"), [])

    def test_pi_that_does_not_answer(self) -> None:
        """It is told of after a while; abort and status do not wait for it."""
        rig = self.begin()
        real = rig.host.command

        def command(name: str, /, **arguments: Any) -> Any:
            return Deferred() if name.startswith("get_") else real(name, **arguments)

        rig.host.command = command
        rig.message("/model")
        rig.message("/status")
        rig.message("/abort")
        rig.run(0.6)
        self.assertEqual(len(rig.link.texts), 2)
        self.assertIn("Status: idle", rig.link.texts[0])
        self.assertEqual(rig.link.texts[1], "No active turn.")
        rig.run(11)
        self.assertEqual(rig.link.texts[2], "Command failed. Pi does not answer just now")

    def test_a_fault_of_ours(self) -> None:
        """It is logged, told, and keeps nothing waiting."""
        rig = self.begin()
        rig.host.results["get_available_models"] = RuntimeError("broken")
        rig.message("/model")
        self.assertEqual(rig.link.texts, ["Command failed."])
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        rig.message("/settings")
        self.assertEqual(self.shown()["text"], "⚙️ Settings:")


class InTurn(MenuCase):
    """Commands that change Pi, and the prompts behind them."""

    def admit(self, *texts: str) -> None:
        """All arrive before anything else happens, as after a time without a connection."""
        for text in texts:
            number = next(self.rig.updates)
            body = {"message_id": number, "chat": {"id": CHAT}, "text": text}
            self.rig.parts.follower.admit(f"d{number}", number, "message", {"message": body})
        self.rig.run(1)

    def test_prompts_wait(self) -> None:
        """What comes behind a template, a model or a new session comes behind it to Pi too."""
        rig = self.begin()
        rig.host.results["get_commands"] = LISTED
        said: list[str] = []
        real_command, real_prompt = rig.host.command, rig.host.prompt

        async def later(name: str, arguments: Any) -> Any:
            await sleep(rig.clock, 0.2)
            said.append(name)
            return await real_command(name, **arguments)

        def command(name: str, /, **arguments: Any) -> Any:
            return Deferred.fromCoroutine(later(name, arguments))

        def prompt(rpc_id: str, message: str, lane: str, images: Any = ()) -> Any:
            said.append(message.partition("] ")[2] or message)
            return real_prompt(rpc_id, message, lane, images)

        rig.host.command, rig.host.prompt = command, prompt
        self.admit("/fix_it", "/model other<b>", "one")
        rig.run(3)
        self.admit("/new", "two")
        rig.run(3)
        self.assertEqual(
            said,
            [
                "get_commands",
                "/fix-it",
                "get_available_models",
                "set_model",
                "one",
                "new_session",
                "two",
            ],
        )

    def test_menus_hold_nothing_up(self) -> None:
        """A menu that hangs on its way keeps no prompt waiting."""
        rig = self.begin()
        hanging: Deferred[Any] = Deferred()
        rig.link.api_results = [hanging]
        rig.message("/settings", 1)
        rig.message("hello", 2)
        self.assertEqual(rig.prompts(), ["hello"])


class Templates(MenuCase):
    """Pi's templates and skills as commands."""

    def test_given_to_pi(self) -> None:
        """By Pi's own name with the arguments, and in turn like any other prompt."""
        rig = self.begin()
        rig.host.results["get_commands"] = LISTED
        rig.message("[[gate a]]", 1)
        rig.message("/fix_it the thing", 2)
        rig.message("plain", 3)
        rig.message("/queue", 4)
        self.assertEqual(self.labels()[1:3], ["1. 🧩 /fix_it", "2. plain"])
        rig.host.open_gate("a")
        rig.run()
        rig.message("/Skill_Deep", 5)
        self.assertEqual(rig.host.prompts[1][1:], ("/fix-it the thing", "normal"), rig.host.prompts)
        self.assertEqual(rig.host.prompts[-1][1], "/skill:deep")
        self.assertEqual(rig.states(), {"settled": 5})

    def test_not_given_to_pi(self) -> None:
        """Commands of extensions, unknown ones and the daemon's; the answer names what exists."""
        rig = self.begin()
        rig.host.results["get_commands"] = LISTED
        for name in ("mcp", "nothing", "fix-it", "daemon"):
            rig.message(f"/{name}")
            names = [] if name == "daemon" else ["fix_it", "skill_deep"]
            if name == "fix-it":
                continue
            self.assertEqual(rig.link.texts[-1], labels.unknown_command(name, True, names))
        rig.message("/model")
        self.assertIn("Choose a model", self.shown()["text"])

    def test_pi_cannot_say(self) -> None:
        """Then it is not said that there is none: it was not given to Pi, and is not kept."""
        rig = self.begin()
        said = labels.unasked_command("fix_it")
        rig.host.results["get_commands"] = PiRefused("no")
        rig.message("/fix_it")
        self.assertEqual(rig.link.texts, [said])
        rig.host.results["get_commands"] = PiGone("gone")
        rig.message("/fix_it", 2)
        self.assertEqual(rig.link.texts, [said, said])
        self.assertEqual(rig.states(), {"settled": 2})
        self.assertEqual(rig.prompts(), [])

    def test_in_a_crash(self) -> None:
        """A template that was admitted only becomes a prompt in the next process, once."""
        rig = self.begin()
        rig.parts.orders._working = rig.clock  # type: ignore[assignment]
        rig.message("/fix_it now")
        self.assertEqual(rig.states(), {"admitted": 1})
        rig.crash()
        host = FakePiHost(rig.clock, str(rig.base / "session.jsonl"))
        host.results["get_commands"] = LISTED
        rig.start(host, connect=False)
        rig.run(1)
        self.assertEqual([text for _, text, _ in rig.host.prompts], ["/fix-it now"])
