"""A headless Chromium driven over its debugging pipe: no port, no network, no other package."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)
SAID = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_chromium() -> str | None:
    """The browser to test with: NSIGHTPY_CHROMIUM, else the first on the path."""
    named = os.environ.get("NSIGHTPY_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page; `requests` are the addresses it asked for, `messages` what its console said."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer = b""
        self._number = 0
        self._session: dict[str, str] = {}
        self.requests: list[str] = []
        self.messages: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while (message := self._next()).get("id") != self._number:
            told = message.get("params", {})
            if message.get("method") == "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            elif message.get("method") in SAID:
                self.messages.append(str(told))
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return dict(message["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has gone")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def attach(self, width: int, height: int) -> None:
        """Make the one page, and listen to it."""
        target = self.call("Target.createTarget", url="about:blank")
        found = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def close(self) -> None:
        self._session = {}
        self.call("Browser.close")

    def open(self, page: Path, place: str = "") -> dict[str, Any]:
        """Open a page of ours, wait until it is drawn, and return what it says about itself."""
        self.call("Page.navigate", url="about:blank")  # another place on a page is no new page
        answer = self.call("Page.navigate", url=page.resolve().as_uri() + place)
        if "errorText" in answer:
            raise FileNotFoundError(f"{page}: {answer['errorText']}")
        wait = (
            "new Promise((done, fail) => { const look = () => document.body?.dataset.facts"
            " ? done(JSON.parse(document.body.dataset.facts)) : document.body?.dataset.failed"
            " ? fail(document.body.dataset.failed) : setTimeout(look, 20); look(); })"
        )
        return dict(self.run(wait))

    def run(self, expression: str) -> Any:
        """The value of an expression in the page, once it is settled."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, start: tuple[float, float], end: tuple[float, float], **keys: int) -> None:
        self.mouse("mousePressed", *start, button="left", clickCount=1, **keys)
        self.mouse("mouseMoved", *end, button="left", buttons=1, **keys)
        self.mouse("mouseReleased", *end, button="left", **keys)

    def press(self, *keys: str) -> None:
        for key in keys:
            text = key if len(key) == 1 else ""
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text)


@contextmanager
def browser(width: int = 1500, height: int = 950) -> Iterator[Browser]:
    """A fresh browser with a profile of its own, gone afterwards."""
    program = find_chromium()
    if program is None:
        raise FileNotFoundError("no Chromium here; NSIGHTPY_CHROMIUM names one")
    to_read, write = os.pipe()
    read, to_write = os.pipe()

    def hand_over() -> None:
        low, high = os.dup(to_read), os.dup(to_write)
        os.dup2(low, 3)
        os.dup2(high, 4)

    nowhere: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *FLAGS, f"--user-data-dir={profile}"]
        process = subprocess.Popen(command, preexec_fn=hand_over, close_fds=False, **nowhere)  # noqa: PLW1509
        os.close(to_read)
        os.close(to_write)
        page = Browser(write, read)
        try:
            page.attach(width, height)
            yield page
            page.close()
        finally:
            process.kill()
            process.wait()
            os.close(write)
            os.close(read)


def settled(page: Browser, condition: str) -> None:
    """Wait until something holds in the page."""
    end = time.monotonic() + 5
    while not page.run(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.02)
