"""Write the generated pages: choices, figures and studies, each from the files that define it.

`docs/conf.py` calls `write` before every build, so that these pages are as new as the code.
"""

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import comparisons
import yaml

from normbench import choices
from normbench.results.figures import NAMES
from normbench.settings import ROWS

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = choices.CONF / "experiment"
GALLERY_FOLDER = ROOT / "results" / "studies" / "gallery"
MEASURED = ROOT / "docs" / "measured.yaml"
OPTION = re.compile(r"^(?!_target_)(\w+): *(.*?)(?: +# *(.*))?$", re.MULTILINE)
RECORD_NOTE = re.compile(r" \((record=\[\w+\])\)")
CODE = re.compile(r"(`[^`]*`)")
ANSWER = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
GROUPS = {
    "dataset": "Data sets",
    "normalizer": "Schemes",
    "cost": "Costs",
    "model": "Models",
    "optimizer": "Optimizers",
}
INTRODUCTIONS = {
    "dataset": (
        "Some are part of this project or made on the spot. The others, `mnist`, `fashion_mnist`, "
        "`old_faithful` and those whose names end in `textbook`, `2d` or `3d`, are looked for in "
        "`data_dir` (or `NORMBENCH_DATA`; by default a cache folder of yours), checked by SHA-256, "
        "and downloaded only if they are missing. `csv`, `parquet`, `npz`, `npy`, `svmlight` and "
        "`openml` take [your own data](../own_data.md)."
    ),
    "normalizer": (
        "With `normalizer.ridge=0` the full spherings are rotations of one another: from zero "
        "weights, gradient descent cannot tell them apart. `chain` puts schemes one after the "
        "other: `normalizer=chain 'normalizer.schemes=[standard,{pca:{components:2}}]'`. "
        "Statistics are computed in float64."
    ),
    "cost": (
        "`cost.l2=0.01` adds a ridge penalty, not on the bias, and `cost.l2_in=features` puts it "
        "on the weights of the untransformed features."
    ),
    "model": (
        "See [Networks](../networks.md). Its options are written as `model.hidden=[100,10]`; "
        "values of `model.normalize` are what is normalized between the layers."
    ),
    "optimizer": (
        "All runs of a grid descend at once, each with its own state. `lbfgs` has no grid: an "
        "iteration is one evaluation of cost and gradient. For `line_search` the step size of the "
        "grid is where each search begins; for `newton` it is the damping."
    ),
}
STUDY_HEADINGS = {
    "textbook": "The textbook",
    "exercises": "The textbook's exercises",
    "lecture": "A lecture",
    "notes": "Notes on PCA and ZCA",
    "research": "Claims of research",
}
# The formulas of scikit-learn's schemes: m is the mean, s the standard deviation (divided by P).
DOCSTRING_SECTIONS = ("Args", "Returns", "Raises", "Attributes", "References")  # of docstrings
SCHEME_FORMULAS = {
    "identity": "z = x",
    "centre": "z = x - m",
    "unit_variance": "z = x / s",
    "standard": "z = (x - m) / s",
    "minmax": "z = (x - min) / (max - min)",
    "maxabs": "z = x / max |x|",
    "robust": "z = (x - median) / (q75 - q25)",
    "quantile": "z = F(x), F the share of training values below x",
    "power": "z = (y - mean y) / (standard deviation of y), y = ((x + 1)^p - 1) / p for x >= 0",
    "unit_norm": "z = x / |x|, of each point",
}


def escaped(text: str) -> str:
    """Return text in which Markdown sees no markup but code between backticks."""
    pieces = CODE.split(text)
    pieces[::2] = [re.sub(r"([*_<>|\[\]$])", r"\\\1", piece) for piece in pieces[::2]]
    pieces[1::2] = [piece.replace("|", r"\|") for piece in pieces[1::2]]
    return "".join(pieces)


def capitalized(text: str) -> str:
    """Return text whose first letter is a capital."""
    return text[:1].upper() + text[1:]


def row(*cells: Any) -> str:
    """Return one line of a table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def described(group: str, name: str, target: str) -> str:
    """Return the docstring of this project's own choices as paragraphs of Markdown."""
    choice = choices.import_target(group, target)
    if not target.startswith("normbench.") or not (
        inspect.isfunction(choice) or inspect.isclass(choice)
    ):
        return ""
    docstring = (inspect.getdoc(choice) or "").removeprefix("Return ")
    paragraphs = capitalized(docstring).split("\n\n")
    return "".join(f"{_section(paragraph)}\n\n" for paragraph in paragraphs)


def _section(paragraph: str) -> str:
    """Return one paragraph of a docstring, a section with its title and its entries as a list."""
    title, _, entries = paragraph.partition(":\n")
    if title not in DOCSTRING_SECTIONS:
        return _prose(paragraph)
    lines = re.split(r"\n(?=    \S)", f"\n{entries}".replace("\n        ", " "))[1:]
    if title in ("Returns", "References"):
        return f"*{title}*: {_prose(' '.join(lines))}"
    items = (re.sub(r"^\s*(\S+): ", r"`\1`: ", line) for line in lines)
    return f"*{title}*:\n\n" + "\n".join(f"- {_prose(item)}" for item in items)


def _prose(paragraph: str) -> str:
    """Return one paragraph of a docstring outside of a table, where bars need no escape."""
    return escaped(" ".join(paragraph.split())).replace(r"\|", "|")


def option_table(text: str, group: str) -> str:
    """Return the settings of one option's file with their defaults and comments; '' for none."""
    options = OPTION.findall(text)
    if not options:
        return ""
    head = row("setting", "default", "meaning") + row("---", "---", "---")
    lines = []
    for key, default, comment in options:
        setting = ROWS.get(f"{group}.{key}") or ROWS.get(key)
        meaning = comment or (setting.help if setting else "")
        lines.append(row(f"`{group}.{key}`", f"`{default}`", escaped(meaning)))
    return head + "".join(lines) + "\n"


def choices_page() -> str:
    """Return the page of every data set, scheme, cost and optimizer."""
    page = (
        "# Choices\n\n"
        "Every choice is a file under `conf/`, written as `GROUP=NAME` on the command line. "
        "Choices that are separated by commas are compared. [Settings](../settings.md) has what "
        "all choices have in common.\n\n"
        "Notation: points x of P rows and N features; m is the mean, S the covariance with "
        "eigenvalues D and eigenvectors V, G and Q those of the correlation, T the variances. "
        "Variance divides by P, and statistics come from the training points only. `ridge` is the "
        "constant that other libraries call epsilon: it is added to every eigenvalue before the "
        "division. R runs, C classes, p points: scores s are `(R, C, p)`, y are the targets. "
        "The step size is `a`, the gradient g.\n\n"
    )
    for group, title in GROUPS.items():
        role = ROWS[f"{group}.*"].role.value
        page += f"## {title}\n\nTheir settings are part of the {role}. "
        page += f"{INTRODUCTIONS[group]}\n\n"
        for name in choices.names(group):
            text = (choices.CONF / group / f"{name}.yaml").read_text()
            target = choices.TARGET_LINE.search(text)[1]
            comment = choices.TARGET_COMMENT.search(text)
            page += f"### `{group}={name}`\n\n"
            page += f"{capitalized(escaped(comment[1]))}.\n\n" if comment else ""
            if group == "normalizer" and name in SCHEME_FORMULAS:
                page += f"`{SCHEME_FORMULAS[name]}`\n\n"
            page += described(group, name, target) + option_table(text, group)
            page += f"Code: `{target}`.\n\n"
    return page


def figures_page(folder: Path) -> str:
    """Return the page of every figure: its question, its picture, what it shows, its command.

    folder: where the pictures are, if they were drawn.
    """
    page = (
        "# Figures\n\n"
        "A comparison draws the figures for which something was recorded; those that name `record` "
        "need that setting. Each picture here was drawn from the comparison under it. "
        "[Make figures, films, handouts](../teaching.md) has formats and sizes.\n\n"
    )
    for name, help_line in NAMES.items():
        picture = comparisons.PICTURES.get(name)
        shows = escaped(capitalized(RECORD_NOTE.sub("", help_line)))
        page += f"## {name}\n\n"
        page += f"**{picture.question}** {shows}.\n\n" if picture else f"{shows}.\n\n"
        moving = (folder / "pictures" / f"{name}.gif").is_file()
        page += image(folder, f"pictures/{name}.{'gif' if moving else 'png'}", shows)
        page += f"```\n{lines(picture.command)}\n" if picture else "```\n"
        page += f"normbench results figure {name}\n```\n\n"
    return page + (
        "## profiles\n\n"
        "**Which scheme is fastest over many data sets?** Share of problems that a scheme solves "
        "within a factor of the fastest.\n\n"
        "```\nnormbench results profile --out profiles\n```\n"
    )


def lines(command: str) -> str:
    """Return a command in lines that fit a page, as a shell takes them."""
    return " \\\n    ".join(
        textwrap.wrap(command, 76, break_long_words=False, break_on_hyphens=False)
    )


def image(folder: Path, file: str, text: str) -> str:
    """Return a picture with its alternative text; '' where it was not drawn."""
    return f"![{text}]({file})\n\n" if (folder / file).is_file() else ""


def reports_page() -> str:
    """Return the part of the first page that links to the reports."""
    page = ""
    drawn = comparisons.reports()
    folder = comparisons.BESIDE.partition("/")[2]
    for name, report in comparisons.REPORTS.items():
        linked = f'<a href="{folder}/{name}.html">{report.title}</a>'
        title = linked if name in drawn else report.title
        if comparisons.TABLE_FILE in report.command:
            title += f' (<a href="{folder}/{comparisons.TABLE_FILE}">the table</a>)'
        left_out = "" if name in drawn else " Left out: its data were not in `data_dir`."
        page += f"- {title}: `{report.command}`.{left_out}\n"
    return page


def answers() -> dict[str, list[str]]:
    """Return the cells after the name of each study in the tables of conf/experiment/README.md."""
    text = (EXPERIMENTS / "README.md").read_text()
    return {
        name: [cell.strip() for cell in cells.split("|")] for name, cells in ANSWER.findall(text)
    }


def value_text(value: Any) -> str:
    """Return a number, or the lowest and the highest."""
    return " to ".join(f"{each:g}" for each in value) if isinstance(value, list) else f"{value:g}"


def expected_table(entries: list[dict[str, Any]], rows: list[dict[str, str]]) -> str:
    """Return what a study expects and what it measured, a line a number.

    rows: the study's part of `measured.yaml`; empty for a study that nobody could run.
    """
    page = row("number", "expected", "within", "measured", "verdict", "why ours differs")
    page += row(*["---"] * 6)
    measured = {each["what"]: each for each in rows}
    for entry in entries:
        what = escaped(entry["what"])
        runs = ", ".join(f"{key}={each}" for key, each in entry.get("of", {}).items())
        what += f" (`{runs}`)" if runs else ""
        expected = escaped(str(entry["says"])) if "says" in entry else value_text(entry["value"])
        ours = measured.get(entry["what"], {"measured": "not measured", "verdict": ""})
        why = entry.get("why", "") if ours["verdict"] != "agrees" else ""
        cells = (ours["measured"], ours["verdict"], escaped(why))
        page += row(what, expected, entry.get("within", ""), *cells)
    return page + "\n"


def schemes_table(rows: list[dict[str, str]]) -> str:
    """Return what a study without expected numbers measured, a line a scheme."""
    page = row("scheme", "the source says", "measured") + row(*["---"] * 3)
    for each in rows:
        page += row(*(escaped(each[key]) for key in ("scheme", "the source says", "measured")))
    return page + "\n"


def study_picture(folder: Path, study: str, question: str) -> str:
    """Return a study's picture: one of the repository, or one drawn from its recorded result."""
    name = study.split("/")[1]
    candidates = [
        f"../../{file.relative_to(ROOT)}" for file in sorted((GALLERY_FOLDER / name).glob("*.png"))
    ]
    command = f"normbench experiment={study}"
    candidates += [
        f"pictures/{figure}.png"
        for figure, picture in comparisons.PICTURES.items()
        if picture.command == command
    ]
    drawn = sorted((folder / "pictures" / "studies" / name).glob("*.png"))
    candidates += [str(file.relative_to(folder)) for file in drawn]
    return next((image(folder, file, question) for file in candidates), "")


def studies_page(folder: Path) -> str:
    """Return the page of every study: question, answer, picture, expected and measured numbers.

    folder: where the pictures are, if they were drawn.
    """
    guide = answers()
    measured = yaml.safe_load(MEASURED.read_text())
    page = (
        "# Studies\n\n"
        "A study asks one question of one data set, and says which numbers its source leads one to "
        "expect. *Measured* is what it came to when it was last run whole (`make measured`); "
        "tests run the studies again and compare. `normbench results studies FOLDER` prints your "
        "own numbers beside the expected ones. A picture is here where the study has been run: "
        "after `make textbook` and `make gallery`, `make docs` draws all of them. "
        "Sections and exercises of the 2nd edition are those of Watt, Borhani, Katsaggelos, "
        "*Machine Learning Refined*. "
        "[How a study is written](../studies.md) explains the files.\n\n"
    )
    for group, title in STUDY_HEADINGS.items():
        page += f"## {title}\n\n"
        files = (EXPERIMENTS / group).glob("*.yaml")
        for file in sorted(files, key=lambda file: list(guide).index(file.stem)):
            study = yaml.safe_load(file.read_text())["study"]
            cells = guide[file.stem]
            rows = measured.get(f"{group}/{file.stem}", [])
            question = escaped(study.get("question") or f"{capitalized(cells[0])}.")
            label = "Answer" if "question" in study else "What to expect"
            page += f"### {file.stem}\n\n{question}\n\n"
            page += f"- {label}: {cells[2]}.\n- Source: {escaped(study['source'])}.\n"
            page += f"- Command: `normbench experiment={group}/{file.stem}`\n"
            need = re.search(r"^# needs ([^ :]*):", file.read_text(), re.MULTILINE)
            page += f"- Needs `{need[1]}` in `data_dir`.\n" if need else ""
            page += "\n" + study_picture(folder, f"{group}/{file.stem}", question)
            expected = study.get("expected")
            page += expected_table(expected, rows) if expected else schemes_table(rows)
    return page


def write(folder: Path) -> None:
    """Write every generated page into a folder, beside the pictures that were drawn there."""
    folder.mkdir(exist_ok=True)
    (folder / "choices.md").write_text(choices_page())
    (folder / "figures.md").write_text(figures_page(folder))
    (folder / "studies.md").write_text(studies_page(folder))
    (folder / "reports.md").write_text(reports_page())
