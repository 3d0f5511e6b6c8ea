"""The sandbox's chat page in a headless Chromium, as a test sees it.

Selenium blocks, so everything that touches the page runs in a thread: L{Browser.run}.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

T = TypeVar("T")
CHROMIUM = Path("/usr/bin/chromium")
CHROMEDRIVER = Path("/usr/bin/chromedriver")
DEADLINE = 20.0
_SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
)


def is_installed() -> bool:
    """Whether Debian's C{chromium} and C{chromium-driver} are there."""
    return CHROMIUM.exists() and CHROMEDRIVER.exists()


class Browser:
    """One Chromium with a profile of its own.

    @param profile: an empty directory.
    @param size: width and height of the window in CSS pixels.
    """

    def __init__(self, profile: Path, size: tuple[int, int] = (1180, 800)) -> None:
        self._profile = profile
        self._size = size
        self._driver: webdriver.Chrome | None = None

    def run(self, work: Callable[[ChatPage], T]) -> Deferred[T]:
        """Run C{work} with the page in a thread; the browser is started by the first call."""
        return deferToThread(lambda: work(ChatPage(self._started())))

    def close(self) -> Deferred[None]:
        """End the browser."""
        return deferToThread(self._quit)

    def _started(self) -> webdriver.Chrome:
        if self._driver is None:
            options = webdriver.ChromeOptions()
            options.binary_location = str(CHROMIUM)
            for switch in _SWITCHES:
                options.add_argument(switch)
            options.add_argument(f"--user-data-dir={self._profile}")
            options.add_argument("--window-size={},{}".format(*self._size))
            options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
            service = Service(executable_path=str(CHROMEDRIVER))
            self._driver = webdriver.Chrome(options=options, service=service)
        return self._driver

    def _quit(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.quit()


class ChatPage:
    """What a person sees and does on the page.  Every method blocks until the page shows it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Go to the page and wait until it is connected."""
        self.driver.get(url)
        self.until(lambda: self.one("#connection").text.startswith("@"), "the page to connect")

    def until(self, found: Callable[[], T], what: str, timeout: float = DEADLINE) -> T:
        """Wait for a true result; elements that are replaced meanwhile are looked up again."""
        wait = WebDriverWait(
            self.driver, timeout, 0.1, ignored_exceptions=[StaleElementReferenceException]
        )
        return wait.until(lambda _: found(), f"waited for {what}")  # type: ignore[no-any-return]

    def one(self, selector: str) -> WebElement:
        """Return the element of a CSS selector."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """Return all elements of a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return their texts as shown."""
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)"
        return list(self.driver.execute_script(script, selector))

    # --- Threads ------------------------------------------------------------------------------

    def threads(self) -> list[str]:
        """Return the names in the list, C{All} first."""
        return self.texts(".thread strong")

    def current_thread(self) -> str:
        """Return the name of the Thread that is open."""
        return self.one("#chat-name").text

    def choose_thread(self, name: str) -> None:
        """Open a Thread as soon as it is in the list."""

        def click() -> bool:
            for row in self.all(".thread"):
                if row.find_element(By.CSS_SELECTOR, "strong").text == name:
                    row.click()
                    return True
            return False

        self.until(click, f"the Thread {name}")
        self.until(lambda: self.current_thread() == name, f"{name} to open")

    def unread(self) -> dict[str, int]:
        """Return the unread marks by Thread name."""
        rows = self.driver.execute_script(
            "return [...document.querySelectorAll('.thread')].map(row =>"
            " [row.querySelector('strong').innerText, row.querySelector('.badge')?.innerText])"
        )
        return {name: int(count) for name, count in rows if count}

    # --- messages -----------------------------------------------------------------------------

    def messages(self) -> list[str]:
        """Return the texts of the open Thread, oldest first, without service messages."""
        return self.texts("#messages .text, #messages .rich")

    def answers(self) -> list[str]:
        """Return the texts of the bot in the open Thread."""
        return self.texts("#messages .theirs .text, #messages .theirs .rich")

    def write(self, text: str) -> None:
        """Type a message and send it with Enter."""
        box = self.one("#text")
        lines = text.split("\n")
        for line in lines[:-1]:
            box.send_keys(line, Keys.SHIFT, Keys.ENTER, Keys.NULL)
        box.send_keys(lines[-1], Keys.ENTER)

    def wait_for_answer(self, wanted: Callable[[str], Any] | str, timeout: float = DEADLINE) -> str:
        """Wait until the bot has said something in the open Thread, and return it."""
        test = (lambda text: wanted in text) if isinstance(wanted, str) else wanted
        return self.until(
            lambda: next((text for text in self.answers() if test(text)), ""),
            f"an answer ({wanted})",
            timeout,
        )

    def press(self, label: str) -> None:
        """Press the newest button of that label in the open Thread."""

        def click() -> bool:
            buttons = [key for key in self.all("#messages .key") if key.text == label]
            if buttons:
                buttons[-1].click()
            return bool(buttons)

        self.until(click, f"the button {label}")

    def attach(self, *paths: Path, caption: str = "") -> None:
        """Choose files and send them, several as an album, with a caption."""
        self.one("#file").send_keys("\n".join(map(str, paths)))
        self.until(lambda: self.one("#files").is_displayed(), "the files to be chosen")
        self.one("#text").send_keys(caption, Keys.ENTER)

    def react(self, text: str, emoji: str) -> None:
        """React to the newest message with that text."""

        def click() -> bool:
            found = [each for each in self.all("#messages .message") if text in each.text]
            if found:
                self._act(found[-1], "React")
            return bool(found)

        self.until(click, f"a message ({text})")
        self.until(lambda: self._choose(emoji), f"the reaction {emoji}")

    def shades(self, selector: str) -> int:
        """Return how many colours an element is drawn with: one where there is nothing to see."""
        script = """
            const [data, done] = arguments;
            const image = new Image();
            image.onload = () => {
              const canvas = document.createElement("canvas");
              [canvas.width, canvas.height] = [image.width, image.height];
              const brush = canvas.getContext("2d");
              brush.drawImage(image, 0, 0);
              const { data: bytes } = brush.getImageData(0, 0, image.width, image.height);
              done(new Set(new Uint32Array(bytes.buffer)).size);
            };
            image.src = `data:image/png;base64,${data}`;"""
        picture = self.one(selector).screenshot_as_base64
        return int(self.driver.execute_async_script(script, picture))

    def _choose(self, emoji: str) -> bool:
        found = self.all(f'.choice .act[aria-label="{emoji}"]')
        if found:
            found[0].click()
        return bool(found)

    def reply(self, text: str, words: str) -> None:
        """Reply to the newest message with these words in the open Thread."""

        def click() -> bool:
            found = [each for each in self.all("#messages .message") if text in each.text]
            if found:
                self._act(found[-1], "Reply")
            return bool(found)

        self.until(click, f"a message ({text})")
        self.until(lambda: self.one("#about").is_displayed(), "the reply to begin")
        self.write(words)

    def edit(self, text: str, words: str) -> None:
        """Change the owner's newest message with that text."""
        found = [each for each in self.all("#messages .mine") if text in each.text]
        self._act(found[-1], "Edit")
        self.one("#text").send_keys(Keys.CONTROL, "a")
        self.write(words)

    def _act(self, message: WebElement, name: str) -> None:
        button = message.find_element(By.CSS_SELECTOR, f".act[title={name}]")
        self.driver.execute_script("arguments[0].click()", button)

    def new_thread(self, name: str) -> None:
        """Open a Thread."""
        self.one("#new-thread").click()
        self.one("#name").send_keys(name, Keys.ENTER)

    def rename_thread(self, name: str) -> None:
        """Rename the Thread that is open."""
        self.one("#rename").click()
        self.one("#name").clear()
        self.one("#name").send_keys(name, Keys.ENTER)

    def shut_thread(self) -> None:
        """Close the Thread that is open on the page, or open it again if it is closed."""
        self.one("#shut").click()

    def is_closed(self) -> bool:
        """Whether nothing can be written into the Thread that is shown."""
        return not self.one("#composer").is_displayed()

    def send_outside(self, wanted: bool) -> None:
        """Choose whether plain text written in C{All} stays there, instead of opening a Thread."""
        box = self.one("#outside")
        if box.is_selected() != wanted:
            box.click()

    def delete_thread(self) -> None:
        """Delete the Thread that is open, after the question."""
        self.one("#remove").click()
        self.one("#naming-done").click()

    def wait_for_toast(self) -> str:
        """Wait for a short notice and return it."""
        return self.until(lambda: self.one("#toast").text, "a toast")

    def is_typing(self) -> bool:
        """Whether the bot is shown as busy in the open Thread."""
        return self.one("#typing").is_displayed()

    def wait_for_typing(self) -> None:
        """Wait until the bot is shown as busy."""
        self.until(self.is_typing, "the typing sign")

    def resize(self, width: int, height: int) -> None:
        """Show the page as on a screen of that size in CSS pixels, down to a phone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    # --- evidence -----------------------------------------------------------------------------

    def screenshot(self, path: Path) -> None:
        """Save a PNG of the window."""
        self.driver.save_screenshot(str(path))

    def complaints(self) -> list[str]:
        """Return what the browser's console says about errors."""
        log = self.driver.get_log("browser")
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]
