"""A running `nearset explore`, and Debian's Chromium on its page."""

import contextlib
import os
import pathlib
import shutil
import subprocess

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[4]
NEARSET = os.environ.get("NEARSET", str(ROOT / "target/debug/nearset"))
LICENCES = ROOT / "examples/licences.jsonl"


class Explorer:
    """The program, until it is closed."""

    def __init__(self, *arguments: str, folder: pathlib.Path) -> None:
        command = [NEARSET, "explore", "--no-open", *arguments]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@contextlib.contextmanager
def chromium():
    """Debian's Chromium, headless. It may run as root, where there is no sandbox."""
    path = shutil.which("chromium")
    assert path, "chromium is needed: crates/nearset-cli/test.sh installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield browser
        browser.close()


def opened(browser: Browser, address: str, **options) -> Page:
    """A page of the explorer that collects what it should not do: errors on the console, and requests that leave the machine."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
    page = context.new_page()
    page.set_default_timeout(20_000)
    faults = page.faults = []  # type: ignore[attr-defined]
    page.on("console", lambda message: message.type in ("error", "warning") and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    origin = address.split("/#")[0]
    local = (origin + "/", "data:", "blob:" + origin)
    page.on("request", lambda request: request.url.startswith(local) or faults.append(f"asked {request.url}"))
    page.goto(address)
    return page
