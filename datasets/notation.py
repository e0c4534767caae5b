"""Recognize and read numbers in another notation: decimal commas, thousands, signs and units."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normbench.datasets.values import UserError, check_choice, spell_setting

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {"point": r"\.", "comma": ",", "blank": r"[ \u00a0\u202f]"}
CURRENCY = "$€£¥₹"
UNIT_PATTERN = r"[^\W\d_]{1,5}[²³]?|°[CF]?"
# A word with a number, such as 4wd, is a number with a unit only beside a blank or a fraction, as a
# multiple of a feature, or in a column of more kinds than this.
MOST_WORD_KINDS = 20
# Multiples as exponents. They are units where a column has one of them alone: K may be Kelvin.
MULTIPLES = {"k": "e3", "K": "e3", "M": "e6", "B": "e9", "bn": "e9"}


@dataclass(frozen=True)
class Notation:
    """How numbers are written.

    Attributes:
        decimal: The decimal separator, `point` or `comma`.
        thousands: The separator of groups of three digits, `point`, `comma` or `blank`, or None.
    """

    decimal: str
    thousands: str | None = None

    def settings(self) -> str:
        """Return the settings that read this notation."""
        if self.thousands is None:
            return spell_setting("dataset.decimal", self.decimal)
        thousands = spell_setting("dataset.thousands", self.thousands)
        if self == Notation("comma", "blank"):
            return f"{spell_setting('dataset.decimal', 'comma')} {thousands}"
        return thousands

    def spell_conversion(self, label: str, texts: "pd.Series[Any]") -> str:
        """Return the line of pandas that converts a column of text, with these entries."""
        column = f"table[{label!r}]"
        steps = {"comma": ".str.replace(',', '')", "point": ".str.replace('.', '')"}
        thousands = steps.get(self.thousands or "", r".str.replace(r'\s', '', regex=True)")
        decimal = ".str.replace(',', '.')" if self.decimal == "comma" else ""
        exponents = r".replace({r'\s*[kK]': 'e3', r'\s*M': 'e6', r'\s*(B|bn)': 'e9'}, regex=True)"
        multiples = exponents if self.has_several_multiples(texts) else ""
        number = r".str.extract(r'(-?[\d.]+(?:e-?\d+)?)')[0].astype(float)"
        return f"{column} = {column}{thousands}{decimal}{multiples}{number}"

    def has_several_multiples(self, texts: "pd.Series[Any]") -> bool:
        """Return whether the numbers of a column, but 0, are several multiples, such as k and M.

        Numbers without a multiple may stand beside k: 950 and 1.2k, but not 12 and 12B.
        """
        texts = texts[texts.str.contains("[1-9]")].astype(object)
        fields = texts.str.extract(f"^{self._pattern()}$")
        units = set(fields["after"][fields["whole"].notna()].fillna(""))
        return len(units) > 1 and units <= {*MULTIPLES, *("" for _ in units & {"k", "K"})}

    def _pattern(self) -> str:
        """Return the pattern of a number with its sign and unit."""
        whole = r"\d+"
        if self.thousands is not None:
            whole = rf"[1-9]\d{{0,2}}(?:{SEPARATORS[self.thousands]}\d{{3}})+|\d+"
        return (
            rf"(?P<minus>[-+]?)\s*(?P<before>[A-Z]{{0,3}}[{CURRENCY}])?\s*(?P<sign>[-+]?)"
            rf"(?P<whole>{whole})(?:{SEPARATORS[self.decimal]}(?P<fraction>\d+))?"
            rf"(?P<exponent>[eE][-+]?\d+)?(?P<blank>\s*)(?P<after>[%‰+{CURRENCY}]|{UNIT_PATTERN})?"
        )

    def read_texts(self, texts: "pd.Series[Any]", is_target: bool) -> "pd.Series[Any] | None":
        """Return the numbers of a column in ordinary notation, or None if it is not written so.

        More than half of its entries must be numbers of this notation, and none a number in
        ordinary notation alone. All numbers but 0 have the same sign of a currency, percent or
        plus, or unit; where they have several multiples, such as k and M, these are multiplied.

        Args:
            texts: The entries of the column, without blanks around them, gaps and gap marks.
            is_target: Whether few whole multiples, such as 5k and 10k, are classes.

        Returns:
            The numbers as text, NaN for entries that are none; None also for a column whose
            numbers are ordinary.
        """
        import pandas as pd

        texts = texts.astype(object)  # Arrow's patterns are others
        fields = texts.str.extract(f"^{self._pattern()}$")
        matches = fields["whole"].notna()
        is_plain = pd.to_numeric(texts, errors="coerce").notna()
        if matches.sum() * 2 <= len(texts) or (is_plain & ~matches).any():
            return None
        fields = fields.fillna("")
        digits = fields["whole"].str.replace(r"\D", "", regex=True)
        is_zero = ~(digits + fields["fraction"]).str.contains("[1-9]")
        signs, exponents = fields["before"] + "|" + fields["after"], fields["exponent"]
        if self.has_several_multiples(texts):
            signs = fields["before"]
            exponents = exponents + fields["after"].map(MULTIPLES).fillna("")
        if signs[matches & ~is_zero].nunique() > 1:
            return None
        is_word = fields["after"].str.fullmatch(UNIT_PATTERN)
        is_word &= is_target | ~fields["after"].isin(MULTIPLES)
        if is_word.any() and not (
            (fields["blank"] + fields["fraction"])[is_word].any()
            or texts[matches].nunique() > MOST_WORD_KINDS
        ):
            return None
        numbers = fields["minus"] + fields["sign"] + digits
        numbers += ("." + fields["fraction"]).where(fields["fraction"] != "", "")
        numbers = (numbers + exponents).where(matches)
        return None if (numbers == texts)[matches].all() else numbers

    def describe(self, texts: "pd.Series[Any]") -> str:
        """Return in words what tells these numbers from ordinary ones, and an example."""
        import pandas as pd

        texts = texts.astype(object)
        odd_texts = texts[pd.to_numeric(texts, errors="coerce").isna()]
        fields = odd_texts.str.extract(f"^{self._pattern()}$")
        odd_texts, fields = odd_texts[fields["whole"].notna()], fields[fields["whole"].notna()]
        traits = []
        if self.decimal == "comma" and fields["fraction"].notna().any():
            traits.append("a comma for the point")
        if self.thousands is not None and (~fields["whole"].str.isdigit()).any():
            traits.append(f"{self.thousands}s between thousands")
        several = self.has_several_multiples(texts)
        for part in ("before",) if several else ("before", "after"):
            traits += [f"{sign!r}" for sign in fields[part].dropna().unique()[:1]]
        traits += ["several multiples, read as k = 1e3, M = 1e6, B = bn = 1e9"] * several
        return f"is of numbers with {' and '.join(traits)} ({odd_texts.iloc[0][:20]!r})"


# In the order of preference, where a column can be read by several.
NOTATIONS = (
    Notation("point"),
    Notation("point", "comma"),
    Notation("comma"),
    Notation("point", "blank"),
    Notation("comma", "point"),
    Notation("comma", "blank"),
)


def check_notation(decimal: Any, thousands: Any) -> Notation | None:
    """Return the notation of `dataset.decimal` and `dataset.thousands`; None if neither is set.

    Raises:
        UserError: One is unknown, or both are the same.
    """
    if decimal is not None:
        check_choice("dataset.decimal", decimal, ("point", "comma"))
    if thousands is not None:
        check_choice("dataset.thousands", thousands, ("point", "comma", "blank"))
    if decimal is None and thousands is None:
        return None
    if decimal == thousands:
        other = "comma" if decimal == "point" else "point"
        raise UserError(
            f"{spell_setting('dataset.thousands', thousands)}: is the decimal separator too; "
            f"write {spell_setting('dataset.decimal', other)}"
        )
    return Notation(decimal or ("comma" if thousands == "point" else "point"), thousands)


def find_notations(texts: "pd.Series[Any]", is_target: bool) -> list[Notation]:
    """Return the notations in which the most entries of a column are numbers; empty without one.

    A column whose numbers are all ordinary ones, such as 1.358, has none.
    """
    import pandas as pd

    is_plain = pd.to_numeric(texts, errors="coerce").notna()
    counts = {
        notation: int(numbers.notna().sum())
        for notation in NOTATIONS
        if (numbers := notation.read_texts(texts, is_target)) is not None
        and (numbers.notna() & ~is_plain).any()
    }
    return [notation for notation in counts if counts[notation] == max(counts.values())]


def choose_notation(candidates: Sequence[Sequence[Notation]]) -> Notation:
    """Return the notation that reads the most columns, given those that read each column."""
    return max(
        NOTATIONS, key=lambda notation: sum(notation in notations for notations in candidates)
    )


def has_decimal_commas(lines: Sequence[str]) -> bool:
    """Return whether lines of a file that has another delimiter hold decimal commas."""
    return any(re.search(r"\d,\d", line) for line in lines)
