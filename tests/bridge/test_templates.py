"""The language of command templates: from JSON and values to words and steps."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.templates.model import MOST_STEPS, Command, Group
from pitelegram.bridge.templates.planning import plan
from pitelegram.bridge.templates.reading import read_template
from pitelegram.bridge.templates.words import split
from pitelegram.errors import TemplateError

HOME, PROJECT = Path("/home/o"), Path("/project")


def planned(template, **values):
    """Return the plan of a template with these values."""
    return plan(read_template(template), values, HOME, PROJECT)


def words(template, **values):
    """Return the words of a template that is one command."""
    step = planned(template, **values)
    assert isinstance(step, Command)
    return list(step.words)


def arguments(template, **values):
    """Return the arguments of C{x} with a template's rest."""
    return words(f"x {template}", **values)[1:]


def each(group):
    """Return the words of each command of a group."""
    return [list(step.words) for step in group.steps]


class SplittingTests(SynchronousTestCase):
    """Words of a command."""

    def test_table(self):
        """White space parts words; quotes and backslashes keep them together."""
        table = (
            ("a b", ["a", "b"]),
            ("  a\t\n b  ", ["a", "b"]),
            ("", []),
            ("'a b' c", ["a b", "c"]),
            ('"a b" c', ["a b", "c"]),
            ("a'b c'd", ["ab cd"]),
            ("''", [""]),
            ('a "" b', ["a", "", "b"]),
            (r"a\ b", ["a b"]),
            (r"\'a\"", ["'a\""]),
            (r"a\\b", [r"a\b"]),
            (r'"a\"b\\c\d"', [r'a"b\c\d']),
            (r"'a\'", ["a\\"]),
            (r"C:\dir\file", [r"C:\dir\file"]),
            ("a\\", ["a\\"]),
            ('"it\'s"', ["it's"]),
            ("'say \"x\"'", ['say "x"']),
            ("a\u00a0b", ["a\u00a0b"]),
            ("a;b|c $(d) `e` $F *", ["a;b|c", "$(d)", "`e`", "$F", "*"]),
        )
        for text, expected in table:
            self.assertEqual(split(text), expected, text)

    def test_open_quote(self):
        """A quote that is never closed is an error."""
        for text in ("'a", '"a', "a 'b", '"\\"'):
            with self.assertRaisesRegex(TemplateError, "never closed"):
                split(text)

    @settings(deadline=None)
    @given(st.text())
    def test_any_text(self, text):
        """Any text is split or refused in words."""
        try:
            split(text)
        except TemplateError as error:
            self.assertIn("never closed", str(error))

    @settings(deadline=None)
    @given(st.lists(st.text(min_size=1)))
    def test_quoted_words(self, wanted):
        """Whatever is between single quotes is one word."""
        wanted = [word.replace("'", "") for word in wanted]
        self.assertEqual(split(" ".join(f"'{word}'" for word in wanted)), wanted)


class PlaceholderTests(SynchronousTestCase):
    """What stands between braces."""

    def test_table(self):
        """Every form of placeholder."""
        table = (
            ("{a}", {"a": "1"}, ["1"]),
            ("{a}{b}", {"a": "1", "b": "2"}, ["12"]),
            ("--f={a}.ogg", {"a": "x y"}, ["--f=x y.ogg"]),
            ("{a=d}", {}, ["d"]),
            ("{a=d}", {"a": "v"}, ["v"]),
            ("{a=+30%}", {}, ["+30%"]),
            ("{a=http://h/?q:r=s}", {}, ["http://h/?q:r=s"]),
            ("{a=}", {}, []),
            ("'{a=two words}'", {}, ["two words"]),
            ("{a-b}", {"a-b": "1"}, ["1"]),
            ("{_a}", {"_a": "1"}, ["1"]),
            ("{a:int=5}", {}, ["5"]),
            ("{a:int}", {"a": -7}, ["-7"]),
            ("{a:int}", {"a": "+7"}, ["+7"]),
            ("{a:number}", {"a": 1.5}, ["1.5"]),
            ("{a:number}", {"a": "1e3"}, ["1e3"]),
            ("{a:bool}", {"a": True}, ["true"]),
            ("{a:bool}", {"a": "NO"}, ["false"]),
            ("{a:bool}", {"a": "on"}, ["true"]),
            ("{a:string}", {"a": 3}, ["3"]),
            ("{a:path}", {"a": "~/x y"}, ["/home/o/x y"]),
            ("{a:path=~}", {}, ["/home/o"]),
            ("{a:path}", {"a": "~root/x"}, ["~root/x"]),
            ("{a:array}", {"a": ["x", 1, None]}, ['["x", 1, null]']),
            ("{a:array}", {"a": '["x"]'}, ['["x"]']),
            ("{a:enum(check,fix)=check}", {}, ["check"]),
            ("'{a:enum(x, y)}'", {"a": "y"}, ["y"]),
            ("{a:int}", {"a": ""}, []),
            ("{a[0]}{a[1]}", {"a": ["x", "y"]}, ["xy"]),
            ("{a[i]}", {"a": ["x", "y"], "i": 1}, ["y"]),
            ("{a[i]}", {"a": '["x", "y"]', "i": "0"}, ["x"]),
            ("{a??b}", {}, ["b"]),
            ("{a??b}", {"a": ""}, ["b"]),
            ("{a??b}", {"a": None}, ["b"]),
            ("{a??b}", {"a": "0"}, ["0"]),
            ("{a??}", {}, []),
            ("{a?--yes:--no}", {"a": "x"}, ["--yes"]),
            ("{a?--yes:--no}", {}, ["--no"]),
            ("{a?--yes:}", {"a": "false"}, []),
            ("{a?1:2}", {"a": " No "}, ["2"]),
            ("{a?1:2}", {"a": 0}, ["2"]),
            ("{a?1:2}", {"a": []}, ["2"]),
            ("{!a?1:2}", {}, ["1"]),
            ("{a?x:y:z}", {}, ["y:z"]),
            ("{a.length}", {"a": ["x", "y"]}, ["2"]),
            ("{n+1}", {"n": "4"}, ["5"]),
            ("{n-1}", {"n": 4}, ["3"]),
            ("{(n+1)*2}", {"n": 4}, ["10"]),
            ("{__(n)}", {"n": 4}, ["004"]),
            ("'{ n + 1 }'", {"n": 4}, ["5"]),
            ("{}", {}, ["{}"]),
            ('\'{"t":"{a}"}\'', {"a": "q"}, ['{"t":"q"}']),
            ("a}b", {}, ["a}b"]),
            ("{a}", {"a": "{b}", "b": "x"}, ["{b}"]),
            ("{a} {b}", {"a": "", "b": "x"}, ["x"]),
            ("'' x", {}, ["x"]),
            ("{a}", {"a": 2.0}, ["2"]),
            ("{a}", {"a": ["ü"]}, ['["ü"]']),
        )
        for template, values, expected in table:
            self.assertEqual(arguments(template, **values), expected, template)

    def test_malformed(self):
        """What is no placeholder is refused when it is read, with its place."""
        table = (
            ("{a", "not closed"),
            ("{a??{b}}", "or has another one in it"),
            ("'{print $1}'", "no placeholder"),
            ("{a??two words}", "with spaces it needs quotes"),
            ("'{ a }'", "no placeholder"),
            ("{a:}", "no type"),
            ("{a:float}", "no type"),
            ("{a:int(3)}", "no type"),
            ("{a:enum()}", "names its choices"),
            ("{a:enum(a,,b)}", "names its choices"),
            ("{a?b}", "needs two texts"),
            ("{!a}", "goes with"),
            ("{!a??b}", "needs two texts"),
            ("{!a=b}", "goes with"),
            ("{a[}", "no placeholder"),
            ("{a[-1]}", "it is no calculation"),
            ("{a.size}", "no placeholder"),
            ("{1a}", "no placeholder"),
            ("{a+}", "missing"),
            ("{(a+1}", "parenthesis"),
            ("{a+1)}", "where it should"),
            ("{_()}", "where it should"),
            ("{9999999999999999}", "no placeholder|too large"),
            ("{9999999999999999+1}", "too large"),
            ("{" + "1+" * 80 + "1}", "too long"),
            ("{=x}", "no placeholder"),
            ("{é}", "no placeholder"),
        )
        for template, reason in table:
            with self.assertRaisesRegex(TemplateError, f"^template: .*({reason})", msg=template):
                read_template(f"x {template}")

    def test_wrong_values(self):
        """A value that is missing or of the wrong kind is an error that does not show it."""
        table = (
            ("{a}", {}, "has no value"),
            ("{a:int}", {"a": "sec ret"}, "whole number"),
            ("{a:int}", {"a": 1.5}, "whole number"),
            ("{a:int}", {"a": True}, "whole number"),
            ("{a:number}", {"a": "nan"}, "a number"),
            ("{a:number}", {"a": "1e999"}, "a number"),
            ("{a:bool}", {"a": "sec ret"}, "true or false"),
            ("{a:array}", {"a": "sec ret"}, "an array"),
            ("{a:array}", {"a": "[" * 5000}, "an array"),
            ("{a:enum(b,c)}", {"a": "sec ret"}, "one of b, c"),
            ("{a[2]}", {"a": ["x"]}, "no such element"),
            ("{a[i]}", {"a": ["x"], "i": -1}, "no such element"),
            ("{a[i]}", {"a": ["x"]}, "has no value"),
            ("{a[0]}", {"a": "sec ret"}, "no array"),
            ("{a.length}", {}, "no array"),
            ("{n+1}", {"n": "sec ret"}, "no whole number"),
            ("{n/0}", {"n": 1}, "divides by zero"),
            ("{n%0}", {"n": 1}, "divides by zero"),
            ("{n*n*n}", {"n": 10**12}, "too large"),
            ("{a}", {"a": "sec\0ret"}, "NUL"),
            ("{a}", {"a": "sec\ud800ret"}, "half a character"),
            ("{a}", {"a": "sec" * 100_000}, "too long"),
            ("{a}" + "{a}" * 10_000, {"a": "sec" * 10_000}, "too long"),
            ("{a} " * 100, {"a": "sec" * 10_000}, "too long"),
        )
        for template, values, reason in table:
            with self.assertRaisesRegex(TemplateError, reason, msg=template) as caught:
                planned(f"x {template}", **values)
            self.assertNotIn("sec", str(caught.exception))

    def test_order_of_values(self):
        """Values of the run come before defaults, those before the placeholder's own."""
        template = {"template": "x {a=inline}", "defaults": {"a": "default"}}
        self.assertEqual(words(template, a="run"), ["x", "run"])
        self.assertEqual(words(template), ["x", "default"])
        self.assertEqual(words(template, a=None), ["x", "default"])
        self.assertEqual(words("x {a=inline}"), ["x", "inline"])

    def test_arithmetic(self):
        """Products before sums, from the left; division cuts towards zero as a remainder shows."""
        table = (
            ("n+2*3", 11),
            ("(n+2)*3", 21),
            ("n-2-1", 2),
            ("n/2", 2),
            ("n%3", 2),
            ("-n/2", -2),
            ("-n%3", -2),
            ("-(n+1)", -6),
            ("n*-1", -5),
            ("100/n/2", 10),
        )
        for sum_, expected in table:
            self.assertEqual(arguments(f"{{{sum_}}}", n=5), [str(expected)], sum_)


class DefaultTests(SynchronousTestCase):
    """Defaults that lead to others."""

    def test_single_placeholder(self):
        """A default that is one placeholder is what that stands for, array elements included."""
        template = {
            "template": "x {p}",
            "defaults": {"p": "{q}", "q": "{list[1]}", "list": ["a", "b"]},
        }
        self.assertEqual(words(template), ["x", "b"])

    def test_not_single(self):
        """Any other default is literal."""
        for default in ("a{q}", "{q}{q}", "{}", "{no placeholder}", "{q"):
            template = {"template": "x {p}", "defaults": {"p": default, "q": "1"}}
            self.assertEqual(words(template), ["x", default])

    def test_circle(self):
        """Defaults that lead back to themselves are an error, not a recursion."""
        for defaults in ({"p": "{p}"}, {"p": "{q}", "q": "{p}"}, {"p": "{p??x}"}, {"p": "{p[0]}"}):
            with self.assertRaisesRegex(TemplateError, "leads back|no array"):
                planned({"template": "x {p}", "defaults": defaults})

    def test_inherited(self):
        """Inner defaults go before outer ones, and may name the outer one of the same name."""
        template = {
            "defaults": {"a": "1", "b": "2", "c": "3"},
            "template": [{"template": "x {a} {b} {c}", "defaults": {"a": "9", "b": "{b}"}}],
        }
        self.assertEqual(each(planned(template)), [["x", "9", "2", "3"]])

    def test_args(self):
        """Declared arguments give types and defaults; those within replace those outside."""
        template = {
            "args": [
                "n:int",
                "file:path",
                "mode:enum(a,b)=a",
                " lang = ru "[1:-1].replace(" ", ""),
            ],
            "template": "x {n} {file} {mode} {lang}",
        }
        self.assertEqual(words(template, n="3", file="~/f"), ["x", "3", "/home/o/f", "a", "ru"])
        with self.assertRaisesRegex(TemplateError, "whole number"):
            planned(template, n="three", file="f")
        inner = {"args": ["n:int"], "template": [{"args": ["m"], "template": "x {n}"}, "y {n=1}"]}
        self.assertEqual(each(planned(inner, n="9")), [["x", "9"], ["y", "9"]])
        with self.assertRaisesRegex(TemplateError, "whole number"):
            planned({"args": ["n:int"], "template": ["x {n}"]}, n="three")
        replaced = {"args": ["n:int"], "template": [{"args": [], "template": "x {n}"}]}
        self.assertEqual(each(planned(replaced, n="three")), [["x", "three"]])

    def test_kinds_of_defaults(self):
        """Numbers, truth values, null and lists are defaults too."""
        template = {
            "template": "x {a} {b} {c} {d}",
            "defaults": {"a": 1, "b": True, "c": None, "d": [1, "x"]},
        }
        self.assertEqual(words(template), ["x", "1", "true", '[1, "x"]'])


class ProgramTests(SynchronousTestCase):
    """What the first word means."""

    def test_place(self):
        """C{~} is the home directory; a relative path starts from the project; a name is a name."""
        table = (
            ("~/bin/x", "/home/o/bin/x"),
            ("./x", "/project/./x"),
            ("tools/x", "/project/tools/x"),
            ("/opt/x", "/opt/x"),
            ("x", "x"),
            ("'a b/x'", "/project/a b/x"),
        )
        for text, expected in table:
            self.assertEqual(words(text), [expected])

    def test_not_from_a_message(self):
        """A value of the run never names the program; defaults may."""
        for text in ("{text}", "/bin/{text}", "{file} x", "{text??}"):
            with self.assertRaisesRegex(TemplateError, "no value|empty", msg=text):
                planned(text, text="rm", file="/tmp/evil")
        self.assertEqual(words("{text??sh}", text="rm"), ["sh"])
        self.assertEqual(
            words({"template": "{p} {text}", "defaults": {"p": "y"}}, text="z"), ["y", "z"]
        )

    def test_empty(self):
        """A program without a name is an error."""
        for text in ("''", "{a=}", "'' x"):
            with self.assertRaisesRegex(TemplateError, "name is empty"):
                planned(text)


class ShapeTests(SynchronousTestCase):
    """Texts, lists, objects, and their fields."""

    def test_sequence(self):
        """A list is a sequence; so is an object with one."""
        for template in (["a", "b"], {"template": ["a", {"template": "b"}]}):
            step = planned(template)
            self.assertIsInstance(step, Group)
            self.assertFalse(step.parallel)
            self.assertEqual(each(step), [["a"], ["b"]])

    def test_fields(self):
        """Times are milliseconds; numbers may be placeholders; labels are one short line."""
        template = {
            "label": " my\nstep ",
            "parallel": True,
            "timeout": 1500,
            "delay": "{ms}",
            "retry": "{tries:int=3}",
            "failure": "branch",
            "output": "{ogg}",
            "recover": ["r {ogg}"],
            "template": ["a", "b"],
            "description": {"any": "thing"},
        }
        step = planned(template, ms="250", ogg="/tmp/o.ogg")
        self.assertEqual((step.label, step.parallel, step.timeout), ("my step", True, 1.5))
        self.assertEqual((step.delay, step.retry, step.failure), (0.25, 3, "branch"))
        self.assertEqual((step.output, each(step.recover)), ("/tmp/o.ogg", [["r", "/tmp/o.ogg"]]))

    def test_what_is_inherited(self):
        """The failure rule goes to those within, time and output do not."""
        template = {
            "failure": "root",
            "timeout": 1000,
            "output": "v",
            "template": ["a", {"failure": "continue", "template": ["b"]}],
        }
        step = planned(template, v="1")
        first, second = step.steps
        self.assertEqual((first.failure, second.failure), ("root", "continue"))
        self.assertEqual(second.steps[0].failure, "continue")
        self.assertEqual((first.timeout, first.output), (None, None))

    def test_nothing_said(self):
        """Without fields: one attempt, no limit, standard output, go on."""
        step = planned("a")
        self.assertEqual((step.label, step.timeout, step.delay), ("a", None, 0.0))
        self.assertEqual((step.retry, step.failure, step.output), (1, "continue", None))
        self.assertIsNone(step.recover)
        for output in ("stdout", "{stdout}", None):
            self.assertIsNone(planned({"template": "a", "output": output}).output)
        self.assertIsNone(planned({"template": "a", "timeout": 0}).timeout)

    def test_conditions(self):
        """C{when}: a truth value, a name, its negation, or a placeholder."""
        table = (
            (True, {}, True),
            (False, {}, False),
            ("", {}, False),
            ("f", {"f": "x"}, True),
            ("f", {"f": "no"}, False),
            ("f", {}, False),
            ("!f", {}, True),
            ("! f", {"f": 1}, False),
            ("{f}", {"f": "1"}, True),
            ("{f}", {}, False),
            ("!{f}", {}, True),
            ("{f=1}", {}, True),
            ("{f?yes:no}", {"f": "x"}, True),
            ("{f?no:yes}", {"f": "x"}, False),
            ("{f??}", {}, False),
            ("{n-1}", {"n": 1}, False),
            ("true", {}, True),
            ("false", {}, False),
            ("true", {"true": "no"}, False),
        )
        for when, values, runs in table:
            step = planned({"template": "a", "when": when}, **values)
            self.assertEqual(step is not None, runs, (when, values))

    def test_skipped_parts(self):
        """A step whose condition is not met is not there; a group of such is not either."""
        off = {"template": "b", "when": False}
        self.assertEqual(each(planned(["a", off, "c"])), [["a"], ["c"]])
        self.assertIsNone(planned([off, off]))
        self.assertEqual(each(planned([[off], "c"])), [["c"]])

    def test_skipped_needs_nothing(self):
        """Values that only a skipped step needs may be missing."""
        self.assertIsNone(planned({"template": "a {b}", "when": "b"}))

    def test_repeat(self):
        """A repeated step is a group of numbered ones; neighbours wrap; padding has its width."""
        template = {
            "repeat": 3,
            "parallel": True,
            "template": "p {index} {prev} {next} {repeat} {_index} {_(index+1)} {__(prev+1)} {index+1}",
        }
        step = planned(template)
        self.assertTrue(step.parallel)
        self.assertEqual([part.label for part in step.steps], ["p 1", "p 2", "p 3"])
        self.assertEqual(
            each(step),
            [
                ["p", "0", "2", "1", "3", "00", "01", "003", "1"],
                ["p", "1", "0", "2", "3", "01", "02", "001", "2"],
                ["p", "2", "1", "0", "3", "02", "03", "002", "3"],
            ],
        )

    def test_repeat_by_array(self):
        """The length of an array says how often, and its elements are told by the index."""
        for repeat in ("{items.length}", "items.length"):
            template = {"repeat": repeat, "template": "p {items[index]}"}
            self.assertEqual(each(planned(template, items=["a", "b"])), [["p", "a"], ["p", "b"]])
            self.assertEqual(words(template, items=["a"]), ["p", "a"])
            self.assertIsNone(planned(template, items=[]))

    def test_repeat_in_words(self):
        """A number may come as a text or a placeholder; an array may be a default."""
        self.assertEqual(len(planned({"repeat": "2", "template": "p"}).steps), 2)
        self.assertEqual(len(planned({"repeat": "{n}", "template": "p"}, n=4).steps), 4)
        template = {
            "repeat": "{l.length}",
            "defaults": {"l": ["x", "y"]},
            "template": "p {l[index]}",
        }
        self.assertEqual(each(planned(template)), [["p", "x"], ["p", "y"]])

    def test_repeat_is_not_overridden(self):
        """A value of the run cannot change the index."""
        step = planned({"repeat": 2, "template": "p {index} {_index}"}, index="9", _index="9")
        self.assertEqual(each(step), [["p", "0", "00"], ["p", "1", "01"]])

    def test_malformed(self):
        """Each malformed shape is an error that names its place."""
        deep = "a"
        for _ in range(40):
            deep = [deep]
        table = (
            (None, "template: a template is"),
            (3, "template: a template is"),
            (True, "template: a template is"),
            ("", "template: the command is empty"),
            ("  ", "template: the command is empty"),
            ("x" * 40_000, "template: a command has at most"),
            ([], "template: the list is empty"),
            (["a"] * 300, "template: a list has at most"),
            (["a", []], r"template\[1\]: the list is empty"),
            (["a", {"template": [None]}], r"template\[1\]\.template\[0\]: a template is"),
            (deep, r"template(\[0\])+: templates stand at most"),
            ({}, r"template\.template: there is no command"),
            ({"template": {}}, r"template\.template: there is no command"),
            ({"template": {"template": "a"}}, r"template\.template: there is no command"),
            ({"template": ""}, r"template\.template: the command is empty"),
            ({"template": "a", "label": 3}, r"template\.label: "),
            ({"template": "a", "parallel": "yes"}, r"template\.parallel: "),
            ({"template": "a", "when": 1}, r"template\.when: "),
            ({"template": "a", "when": "a b"}, r"template\.when: "),
            ({"template": "a", "when": "{a b}"}, r"template\.when: "),
            ({"template": "a", "args": "n"}, r"template\.args: "),
            ({"template": "a", "args": [3]}, r"template\.args\[0\]: "),
            ({"template": "a", "args": ["a", "b c"]}, r"template\.args\[1\]: "),
            ({"template": "a", "args": ["a:zzz"]}, r"template\.args\[0\]: "),
            ({"template": "a", "defaults": []}, r"template\.defaults: "),
            ({"template": "a", "defaults": {"a b": 1}}, r"template\.defaults: "),
            ({"template": "a", "defaults": {"a": {}}}, r"template\.defaults\.a: "),
            ({"template": "a", "defaults": {"a": [[1]]}}, r"template\.defaults\.a: "),
            ({"template": "a", "defaults": {"a": 10**5000}}, r"template\.defaults\.a: "),
            ({"template": "a", "timeout": "{a"}, r"template\.timeout: "),
            ({"template": "a", "timeout": True}, r"template\.timeout: "),
            ({"template": "a", "timeout": float("nan")}, r"template\.timeout: "),
            ({"template": "a", "timeout": 10**5000}, r"template\.timeout: "),
            ({"template": "a", "timeout": ""}, r"template\.timeout: "),
            ({"template": "a", "timeout": -1}, r"template\.timeout: "),
            ({"template": "a", "timeout": "soon"}, r"template\.timeout: "),
            ({"template": "a", "timeout": "1_0"}, r"template\.timeout: "),
            ({"template": "a", "timeout": 10**12}, r"template\.timeout: "),
            ({"template": "a", "delay": "1e999"}, r"template\.delay: "),
            ({"template": "a", "delay": []}, r"template\.delay: "),
            ({"template": "a", "retry": 0}, r"template\.retry: "),
            ({"template": "a", "retry": 1.5}, r"template\.retry: "),
            ({"template": "a", "retry": 1000}, r"template\.retry: "),
            ({"template": "a", "retry": "{a=}"}, r"template\.retry: "),
            ({"template": "a", "repeat": 0}, r"template\.repeat: "),
            ({"template": "a", "repeat": -1}, r"template\.repeat: "),
            ({"template": "a", "repeat": False}, r"template\.repeat: "),
            ({"template": "a", "repeat": "{b.length}"}, r"template\.repeat: .*no array"),
            ({"template": "a", "repeat": MOST_STEPS + 1}, r"template\.repeat: at most"),
            ({"template": "a", "failure": "stop"}, r"template\.failure: "),
            ({"template": "a", "failure": ["root"]}, r"template\.failure: "),
            ({"template": "a", "output": "a b"}, r"template\.output: "),
            ({"template": "a", "output": ["x"]}, r"template\.output: "),
            ({"template": "a", "output": "x"}, r"template\.output: \{x\} has no value"),
            ({"template": "a", "recover": {"template": 3}}, r"template\.recover\.template: "),
            ({"template": "a", "recover": 3}, r"template\.recover: "),
        )
        for template, message in table:
            with self.assertRaisesRegex(TemplateError, "^" + message, msg=message):
                planned(template)

    def test_too_many_steps(self):
        """Repetitions in one another are bounded, whether they run or not."""
        template = {"template": "a", "when": False, "repeat": 100}
        for _ in range(4):
            template = {"template": [template], "repeat": 100}
        with self.assertRaisesRegex(TemplateError, "more than 1000 steps"):
            planned(template)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
PIECES = st.sampled_from(
    [
        "{",
        "}",
        "a",
        "{a}",
        "{a:int}",
        "{a??b}",
        "{a?b:c}",
        "{a[0]}",
        "{_(a+1)}",
        "'",
        '"',
        "\\",
        " ",
    ]
    + ["{a=x}", "=", "?", ":", "[", "]", "{a.length}", "/", "~", "-", "{index}", "enum(", ")"]
)
TEXTS = st.text() | st.lists(PIECES).map("".join)
JSON = st.recursive(
    PLAIN | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["template", "when", "args", "defaults", "timeout", "delay", "output", "retry"]
                + ["failure", "recover", "repeat", "parallel", "label"]
            )
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
VALUES = st.dictionaries(
    st.sampled_from(["a", "b", "text", "file", "index"]), PLAIN | st.lists(PLAIN), max_size=4
)


class AnyInputTests(SynchronousTestCase):
    """Nothing that anybody may write raises anything but the typed error."""

    @settings(max_examples=200, deadline=None)
    @given(TEXTS, VALUES)
    def test_any_command(self, text, values):
        """Any text with any values is planned or refused in words."""
        try:
            step = planned(text, **values)
        except TemplateError as error:
            self.assertTrue(error.reason)
        else:
            self.assertTrue(all(step.words))

    @settings(max_examples=200, deadline=None)
    @given(JSON, VALUES)
    def test_any_json(self, template, values):
        """Any JSON with any values is planned, skipped, or refused in words."""
        try:
            step = planned(template, **values)
        except TemplateError as error:
            self.assertTrue(error.place.startswith("template"))
        else:
            self.assertIsInstance(step, Command | Group | None)

    HOSTILE = st.text() | st.sampled_from(
        ["a b", "'", '"', "$(rm -rf /)", "`id`", "; rm x", "a\nb", "-rf", "--out=/x", "\\", "| sh"]
        + ["{text}", "{file}", "{a", "*", "~", "&&", "> f", "\u2028", "\t"]
    )

    @settings(deadline=None)
    @given(HOSTILE, HOSTILE)
    def test_one_word_stays_one(self, text, name):
        """No value makes two arguments of one, or is read for placeholders again."""
        expected = ["x", "--", "<" + text + ">", "n=" + name + text, "end"]
        try:
            self.assertEqual(
                words("x -- <{text}> n={name}{text} end", text=text, name=name), expected
            )
        except TemplateError as error:
            self.assertTrue("\0" in text + name or _halved(text + name), error.reason)

    @settings(deadline=None)
    @given(HOSTILE)
    def test_round_trip_through_json(self, text):
        """Values are untouched by the way that settings take."""
        template = json.loads(json.dumps({"template": "x {a}", "defaults": {"a": text}}))
        try:
            found = words(template)
        except TemplateError:
            return
        self.assertIn(found, (["x", text], ["x"] if not text else ["x", text]))


def _halved(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
