"""The mutants of a Python file: one small change each, of the kinds that people make by mistake."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.Mod: "*"}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum"}
CALLED |= {"maximum": "minimum", "zeros": "ones", "ones": "zeros", "sum": "mean", "median": "mean"}


@dataclass(frozen=True)
class Mutant:
    """A file's text with one change: the line that it is in, and the line before and after."""

    line: int
    before: str
    after: str
    text: str


def of(text: str) -> list[Mutant]:
    """Return every mutant of a file's text, in order."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw, found = text.encode(), []
    for first, last, new in sorted(_changes(ast.parse(text), raw, starts)):
        changed = (raw[:first] + new.encode() + raw[last:]).decode()
        number = raw[:first].count(b"\n")
        after = changed.splitlines()[number]
        found.append(Mutant(number + 1, lines[number].strip(), after.strip(), changed))
    return found


def _changes(tree: ast.Module, raw: bytes, starts: list[int]) -> Iterator[tuple[int, int, str]]:
    """Yield the byte span and the new text of each change."""

    def place(line: int, column: int) -> int:
        return starts[line - 1] + column

    def span(node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, (ast.expr, ast.stmt))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)

    def between(left: ast.AST, right: ast.AST, new: str) -> tuple[int, int, str]:
        """Replace the operator between two operands, whatever brackets stand around it."""
        first, last = span(left)[1], span(right)[0]
        gap = raw[first:last].decode()
        core = gap.strip(" ()\n\t\\")
        begin = first + len(gap[: gap.index(core)].encode())
        return begin, begin + len(core.encode()), new

    for node in _code(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield between(node.left, node.comparators[0], COMPARED[type(node.ops[0])])
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            yield between(node.left, node.right, COMPUTED[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            new = "or" if isinstance(node.op, ast.And) else "and"
            yield between(node.values[0], node.values[1], new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            first, sign = span(node)[0], 1 if isinstance(node.op, ast.USub) else len("not ")
            yield first, first + sign, ""
        elif _is_last_axis(node):
            assert isinstance(node, ast.keyword)
            yield *span(node.value), "0"
        elif isinstance(node, ast.Constant):
            first, last = span(node)
            if isinstance(node.value, bool):
                yield first, last, str(not node.value)
            elif isinstance(node.value, (int, float)):
                yield first, last, _slip(node.value)
        elif isinstance(node, (ast.If, ast.IfExp)):
            first, last = span(node.test)
            yield first, last, f"(not ({raw[first:last].decode()}))"
        elif isinstance(node, ast.Call):
            function = node.func
            name = getattr(function, "attr", getattr(function, "id", ""))
            if name in CALLED:
                last = span(function)[1]
                yield last - len(name), last, CALLED[name]


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that compute: no annotations, no words for people, no imports."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST):
                continue
            if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)):
                continue
            if _is_open_size(tree, node) or _is_idle(node):
                continue
            yield node
            if not _is_last_axis(node):
                yield from _code(node)


def _slip(number: float) -> str:
    """Return a number with a mistake: one more, or twice as much.

    Of a long one a digit is lost, and of a very small or large one the sign of its exponent: nobody
    could tell a limit of 201 steps from one of 200, or a tolerance of 2e-10 from one of 1e-10.
    """
    if isinstance(number, int):
        return str(number + 1 if number < 50 else number // 10)
    if number and not 1e-3 <= number < 1e3:
        return repr(1 / number)
    return repr(2 * number or 1.0)


def _is_last_axis(node: ast.AST) -> bool:
    """Return whether a node is `axis=-1`: -2 and 1 may well be the same axis, and 0 is not."""
    last = isinstance(node, ast.keyword) and isinstance(node.value, ast.UnaryOp)
    return last and node.arg == "axis"


def _is_idle(node: ast.AST) -> bool:
    """Return whether a node changes no number: copies, checks, and what types alone are read from.

    `copy=` and `check_finite=` of numpy and scipy, and `if TYPE_CHECKING`.
    """
    if isinstance(node, ast.keyword):
        return node.arg in ("copy", "check_finite")
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def _is_open_size(call: ast.AST, node: ast.AST) -> bool:
    """Return whether a node is the -1 of `reshape(-1)`, for which numpy takes -2, too."""
    reshapes = isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "reshape"
    return reshapes and isinstance(node, ast.UnaryOp)
