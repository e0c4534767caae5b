"""MLflow's pages and the report in a real browser: Debian's Chromium, driven by Playwright.

The saved view is MLflow's own, undocumented format: this test is what ties it to the version.
"""

import itertools
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from types import SimpleNamespace

import pytest

from normbench import names
from normbench.record import mlflow as copying
from normbench.results.pages.views import Page
from normbench.results.store.comparison_files import recorded
from normbench.results.store.runs import load
from tests import forks
from tests.conftest import SCREENSHOTS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

EXPERIMENT = "breast_cancer-softmax"
SCHEMES = ["identity", "pca_sphere", "standard"]
COLORS = {"identity": "#000000", "standard": "#cc8040", "pca_sphere": "#0072b2"}
# A quiet browser: nothing of its own goes to the network, by way of a proxy neither.
ARGUMENTS = [
    "--no-proxy-server",
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever is set here
PATIENCE = 120_000  # milliseconds
# Complaints of MLflow's own page, which goes on: it asks who is logged in, and a server without
# logins answers 404; and its panels, resized while they are laid out, are drawn a frame later.
KNOWN = (
    "/ajax-api/2.0/mlflow/users/current",
    "ResizeObserver loop completed with undelivered notifications",
)
WHITE = "rgb(255, 255, 255)"
# Behind each curve MLflow draws a pale one, for what smoothing took away: it cannot be hovered.
CHARTS = """() => [...document.querySelectorAll('.js-plotly-plot')].map(chart => ({
    curves: chart.data.filter(trace => trace.hoverinfo !== 'skip').map(trace => ({
        name: trace.name, points: trace.y.length, color: trace.marker.color,
    })),
    axis: chart._fullLayout.yaxis.type,
}))"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The default comparison with fewer iterations, and the dashboard that serves it."""
    folder = tmp_path_factory.mktemp("served")
    environment = forks.user_environment()
    assert forks.run(["iterations=30"], folder).returncode == 0
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "dashboard.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", "normbench", "dashboard", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", log)
        link = _link(log)
        (comparison,) = recorded(folder / "outputs")
        sweep = load(comparison.home, comparison.id)
        base, store = f"http://127.0.0.1:{port}/", f"sqlite:///{folder}/mlflow.db"
        yield SimpleNamespace(link=link, base=base, sweep=sweep, store=store)
    finally:
        server.terminate()
        server.wait(60)
        with pytest.raises(OSError, match="refused"):  # what it served ended with it
            DIRECT.open(f"http://127.0.0.1:{port}/health", timeout=5)


@pytest.fixture(scope="module")
def report(served, tmp_path_factory):
    """The address of the comparison's report as a file."""
    from normbench.results.report import page

    return page.write(served.sweep, tmp_path_factory.mktemp("report")).as_uri()


def _link(log):
    """Return the link that the dashboard prints once its server answers."""
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        for line in log.read_text().splitlines():
            if line.startswith(f"{EXPERIMENT}: "):
                return line.split(": ", 1)[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def _wait(address, log):
    """Wait for the server: 8 s on an idle machine, and many times that on a busy one."""
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        try:
            with DIRECT.open(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"{address} does not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture
def page(browser):
    """A page in a profile of its own; whatever it asks for or complains of is judged at the end."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    asked, errors = [], []
    context.on("request", lambda request: asked.append(request.url))
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on(
        "console", lambda message: errors.append(message) if message.type == "error" else None
    )
    yield opened
    context.close()
    local = ("http://127.0.0.1:", "data:", "blob:http://127.0.0.1:", "file:///")
    assert [url for url in asked if not url.startswith(local)] == []
    told = [_complaint(error) for error in errors]
    assert [words for words in told if not any(known in words for known in KNOWN)] == []


def _complaint(error):
    return error if isinstance(error, str) else f"{error.text} {error.location.get('url', '')}"


def _keep(page, name, **options):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", **options)


def _charts(page, count):
    """Return what the charts of a page draw, once so many of them do."""
    enough = "count => document.querySelectorAll('.js-plotly-plot .main-svg').length >= 2 * count"
    page.wait_for_function(enough, arg=count, timeout=PATIENCE)
    for _ in range(PATIENCE // 200):
        charts = page.evaluate(CHARTS)
        if len(charts) >= count and all(chart["curves"] for chart in charts[:count]):
            return charts
        page.wait_for_timeout(200)
    raise AssertionError(f"no {count} charts with curves: {charts}")


def _names(chart):
    """Return the runs that a chart draws: MLflow writes the metric behind each name."""
    return sorted(curve["name"].split(" (")[0] for curve in chart["curves"])


def test_the_link_opens_on_the_charts_of_the_comparison(served, page):
    page.goto(served.link)
    cost, misclassified, *others = _charts(page, 4)
    _keep(page, "charts")
    assert cost["axis"] == "log"
    assert misclassified["axis"] == "log"  # no run ends without one
    for chart in (cost, misclassified):
        assert _names(chart) == SCHEMES
        assert [curve["points"] for curve in chart["curves"]] == [31] * 3
        first = chart["curves"][0]["name"].split(" (")[0]
        assert first == "identity"  # a short legend shows the first
    for curve in cost["curves"]:
        assert curve["color"] == COLORS[curve["name"].split(" (")[0]]
    assert _names(others[0]) == SCHEMES  # the step runs: where each step size ends
    # Of ten step sizes, those that neither diverged nor are decided by rounding.
    steps = served.sweep.of_role("step")
    ranked = steps[~steps["verdict"].isin(names.UNRANKED)].groupby("normalizer").size()
    assert ranked.max() == 10
    assert ranked.min() < 10
    drawn = {curve["name"].split(" (")[0]: curve["points"] for curve in others[0]["curves"]}
    assert drawn == ranked.to_dict()
    text = page.inner_text("body")
    for words in ("train/cost", "train/misclassifications", "step runs", "theory"):
        assert words in text, words
    assert "3 matching runs" in " ".join(text.split())
    assert "Which of identity, standard and pca_sphere" in text
    assert page.get_by_text("Fastest: pca_sphere. ").is_visible()  # in what is not folded


@pytest.mark.whole
def test_the_view_of_the_step_runs_draws_them_all(served, page):
    page.goto(f"{served.link}-steps")
    cost = _charts(page, 2)[0]
    _keep(page, "steps")
    assert len(cost["curves"]) == 30
    assert "pca_sphere, step 10" in _names(cost)


def test_the_report_opens_inside_the_artifact_viewer(served, page):
    client = copying.connect(served.store)
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    (run,) = copying.search(client, [experiment], names.ROLE.equals(names.SWEEP))
    page.goto(served.base + Page("", experiment, run.info.run_id).report)
    inside = page.frame_locator("iframe")
    inside.locator("h1").wait_for(timeout=PATIENCE)
    _keep(page, "artifact")
    assert "Which of identity, standard and pca_sphere" in inside.locator("h1").inner_text()
    assert inside.locator("figure svg:visible").count() == 4
    assert inside.locator("figure svg").first.bounding_box()["width"] > 400
    assert "normbench iterations=30" in inside.locator("body").inner_text()


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("screen", 1200, "light"), ("dark", 1200, "dark"), ("phone", 390, "light")],
)
def test_the_report_fits_its_window(report, page, name, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(report)
    _keep(page, f"report-{name}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shades = page.evaluate(
        "['body', '.card'].map(of => getComputedStyle(document.querySelector(of)).backgroundColor)"
    )
    for card in page.locator(".card").all():  # on a phone, letters are legible: a figure scrolls
        assert card.locator("svg, img").count() == 1
        scrolls = card.evaluate("card => card.scrollWidth > card.clientWidth")
        assert scrolls == (width < 500)
    # A figure is drawn on white; in the dark it is inverted, and its ground is the page's.
    dark = ["rgb(18, 22, 28)", "rgba(0, 0, 0, 0)"]
    assert shades == (dark if scheme == "dark" else [WHITE, WHITE])
    if name == "screen":
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.pdf(path=SCREENSHOTS / "report.pdf", format="A4")
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.querySelector('.wide')).overflowX") == (
            "visible"
        )


def test_the_first_screen_answers(report, page):
    """The question, who is fastest, why, and the whole picture, above the fold."""
    page.set_viewport_size({"width": 1400, "height": 900})
    page.goto(report)
    bottom = "nodes => nodes.map(node => node.getBoundingClientRect().bottom)"
    for part in ("h1", ".answer", ".first svg"):
        ends = page.locator(part).evaluate_all(bottom)
        assert ends
        assert max(ends) <= 900, part
    inner = "nodes => nodes.filter(node => node.scrollWidth > node.clientWidth + 1).length"
    for width in (1400, 900, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator(".wide").evaluate_all(inner) == 0, width
    page.emulate_media(color_scheme="dark")
    looks = "node => getComputedStyle(node).filter"
    assert "invert" in page.locator(".first svg").first.evaluate(looks)


def test_the_explorer_answers_a_student_in_three_moves(report, page):
    """Why can I not take step 1 on raw data?"""
    page.goto(report)
    box = page.locator("section.explore").first
    said, slider = box.locator(".said"), box.locator("input[type=range]")
    lines = box.locator(".chosen:visible")

    def places():
        return [line.evaluate("line => line.style.left") for line in lines.all()]

    assert said.inner_text().startswith("Each at its best step: identity at ")
    assert len(places()) == 3
    assert len(set(places())) > 1
    slider.focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    assert said.inner_text().startswith("Step 1e-7 for all: ")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    assert said.inner_text().startswith("Step 1 for all: identity: diverged, ")
    assert " times the excess cost left; " in said.inner_text()  # it went up
    assert len(set(places())) == 1
    assert page.url.endswith("#step=1")
    box.get_by_label("each at its best step").check()
    assert said.inner_text().startswith("Each at its best step: identity at ")
    assert len(set(places())) > 1
    area = box.locator(".row .why").nth(1).bounding_box()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    page.mouse.down()
    page.mouse.move(area["x"] + 0.2 * area["width"], area["y"] + area["height"] / 2)
    page.mouse.up()
    assert said.inner_text().startswith("Each at a step of its own: ")
    box.get_by_label("identity").uncheck()
    assert lines.count() == 2
    assert "identity" not in said.inner_text()
    assert page.url.endswith("#schemes=standard%2Cpca_sphere")
    _keep(page, "explorer", full_page=True)
    page.goto(page.url.partition("#")[0] + "#step=0.1&schemes=standard")
    page.reload()
    assert said.inner_text().startswith("Step 0.1 for all: standard: ")
    assert lines.count() == 1
    page.emulate_media(media="print")
    assert not box.is_visible()


def test_the_explorer_moves_paths_over_their_contours(page, tmp_path):
    """Of least squares also between the steps of the grid; dark, and on a phone."""
    import numpy as np

    import normbench
    from normbench.results.report import page as report

    x = np.random.default_rng(0).standard_normal((40, 2)) * [1, 4]
    y = x @ [1.0, 0.5]
    found = normbench.compare(
        x, y, "least_squares", ["identity", "pca_sphere"], [0.01, 0.1], record=["contours"]
    )
    page.set_viewport_size({"width": 390, "height": 900})
    page.emulate_media(color_scheme="dark")
    page.goto(report.write(found.sweep, tmp_path).as_uri())
    box = page.locator("section.explore")
    paths, slider = box.locator("path.walked"), box.locator("input[type=range]")
    slider.focus()
    seen = set()
    for _ in range(3):
        seen.add(paths.first.get_attribute("d"))
        page.keyboard.press("PageUp")  # a tenth of the way: off the grid
    assert len(seen) == 3
    assert "identity: predicted" in box.locator(".said").inner_text()
    small = "nodes => Math.min(...nodes.map(node => parseFloat(getComputedStyle(node).fontSize)))"
    assert box.locator("p, span, .end, figcaption").evaluate_all(small) >= 11
    assert paths.count() == 2
    box.get_by_label("identity").uncheck()
    assert paths.count() == 1
    _keep(page, "explorer-paths", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_share_is_a_number_that_a_person_reads(page):
    """Two digits, as decimals; no share that is left is called 0 %."""
    from normbench.results.report.explorer import SCRIPT

    (function,) = re.findall(r"^  const percent = .*?^  };$", SCRIPT, re.MULTILINE | re.DOTALL)
    said = page.evaluate(
        f"(shares) => {{ {function} return shares.map(percent); }}",
        [0, 1e-9, 9.9e-7, 2e-6, 2.12e-6, 4.567e-4, 0.0123, 0.666, 1, 2.253, 1234, None],
    )
    assert [words.replace("\u00a0", " ") for words in said] == [
        *("0 %", "<0.0001 %", "<0.0001 %", "0.0002 %", "0.00021 %", "0.046 %", "1.2 %", "67 %"),
        *("100 %", "225 %", "1,200 times", "gone off"),
    ]


# Counts how often each row's right picture is cleared, which a redraw begins with.
COUNTING = """() => {
    window.cleared = 0;
    const before = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...sides) {
        window.cleared += 1;
        before.apply(this, sides);
    };
}"""


def test_the_explorer_redraws_what_moved_alone(report, page):
    """A redraw of 3 x 10 x 100 takes a third of a frame: see the row of the benchmark."""
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(report)
    page.evaluate(COUNTING)
    box = page.locator("section.explore").first

    def cleared():
        count = page.evaluate("window.cleared")
        page.evaluate("window.cleared = 0")
        return count

    row = box.locator(".row .why").nth(1)
    row.scroll_into_view_if_needed()
    area = row.bounding_box()
    page.mouse.move(area["x"] + 0.2 * area["width"], area["y"] + area["height"] / 2)
    page.mouse.down()
    page.mouse.up()
    assert cleared() == 1  # one of three schemes
    box.locator("input[type=range]").press("ArrowLeft")
    assert cleared() == 3
    box.get_by_label("identity").uncheck()
    assert cleared() == 0
    box.get_by_label("identity").check()
    assert cleared() == 1
    # The share that is left is one line, on a phone too.
    heights = "nodes => nodes.map(node => node.getBoundingClientRect().height)"
    assert max(box.locator(".end").evaluate_all(heights)) < 30
    sides = (
        "nodes => nodes.map(node => node.getBoundingClientRect()).map(box => [box.left, box.right])"
    )
    labels = sorted(pair for pair in box.locator(".axis span:visible").evaluate_all(sides))
    assert len(labels) >= 6
    assert all(left[1] < right[0] for left, right in itertools.pairwise(labels))
    page.emulate_media(color_scheme="dark")  # as the picture above it
    looks = "node => getComputedStyle(node).filter"
    assert "invert" in box.locator("canvas").first.evaluate(looks)


def test_the_explorer_turns_iterations_into_seconds(report, page):
    page.goto(report)
    box = page.locator("section.explore").first
    last = box.locator(".axis .what span").last
    assert last.inner_text() == "30"
    box.get_by_label("over seconds of one run").check()
    assert last.inner_text().endswith(" s")
    assert "by=seconds" in page.evaluate("window.location.hash")
    page.goto(f"{report}#by=seconds")
    page.reload()
    assert last.inner_text().endswith(" s")
    box.get_by_label("over seconds of one run").uncheck()
    assert last.inner_text() == "30"
