"""The report's explorer in a browser: what a redraw takes of the 16 ms of a frame."""

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FRAME = 16e-3  # seconds
REDRAWS = 101
# The same browser as in the tests: without sandbox, graphics card and network.
ARGUMENTS = [
    "--no-proxy-server",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
]
COSTS = ("softmax", "least_squares")
# Move the slider, and wait for the layout and for the pixels of every picture.
MOVE = """(count) => {
  const explorer = document.querySelector("section.explore");
  const slider = explorer.querySelector("input[type=range]");
  const pictures = [...explorer.querySelectorAll(".what canvas")];
  for (let n = 0; n < count; n += 1) {
    slider.value = (n * 7) % (Number(slider.max) + 1);
    slider.dispatchEvent(new Event("input"));
    explorer.getBoundingClientRect();
    pictures.forEach((picture) => picture.getContext("2d").getImageData(0, 0, 1, 1));
  }
}"""


def explorer_rows(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield the processor time of the page's thread for a redraw over the time of a frame.

    Of the default comparison: 3 schemes, 10 step sizes, 100 iterations. Of least squares, the
    histories between the step sizes are computed as well.
    """
    for cost in COSTS:
        name = f"explorer's redraw over 16 ms, 3 x 10 x 100, {cost}"
        if only not in name:
            continue
        chromium = shutil.which("chromium")
        if importlib.util.find_spec("playwright") is None or chromium is None:
            yield {"name": name, "ratio": None, "note": "no playwright, or no chromium"}
            continue
        value = _redraw(cost, chromium, turns) / FRAME
        yield {"name": name, "ratio": value, "sense": "at most", "target": 1.0, "met": value <= 1}


def _redraw(cost: str, chromium: str, turns: int) -> float:
    """Return the median over turns of the seconds of a redraw."""
    from statistics import median

    from playwright.sync_api import sync_playwright

    import normbench
    from normbench.datasets.bundled import breast_cancer

    data = breast_cancer()
    steps = [10.0**power for power in range(-7, 3)]
    comparison = normbench.compare(data.x, data.y, cost, step_sizes=steps, iterations=100)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        report = Path(folder) / "report.html"
        comparison.report(report)
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(report.as_uri())
        metrics = page.context.new_cdp_session(page)
        metrics.send("Performance.enable", {"timeDomain": "threadTicks"})

        def busy() -> float:
            """Return the processor time of the page's thread, in seconds."""
            values = metrics.send("Performance.getMetrics")["metrics"]
            return float(next(each["value"] for each in values if each["name"] == "TaskDuration"))

        page.evaluate(MOVE, REDRAWS)
        seconds = []
        for _ in range(turns):
            start = busy()
            page.evaluate(MOVE, REDRAWS)
            seconds.append((busy() - start) / REDRAWS)
        browser.close()
    return median(seconds)
