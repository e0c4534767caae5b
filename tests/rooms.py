"""Lines of code and arrows of each room: `python -m tests.rooms`.

A line counts unless it is blank, or holds nothing but a comment or a docstring.
"""

import ast
import io
import tokenize
from collections import Counter

from tests.test_rooms import ROOMS, TEXTS, arrows, room_of

LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_lines(text):
    """Return how many lines of a Python text hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, docstring.end_lineno + 1))
    return len(lines)


def main():
    """Print a line for each room, from the top down, and the sums."""
    lines = Counter()
    for name, file in TEXTS.items():
        lines[room_of(name)] += count_lines(file.read_text())
    edges = {room: len(others - {room, ""}) for room, (others, _) in arrows().items()}
    for room in [*ROOMS, ""]:
        print(f"{room or 'faces':20} {lines[room]:6} {edges.get(room, 0):4}")
    print(f"{'all':20} {sum(lines.values()):6} {sum(edges.values()):4}")


if __name__ == "__main__":
    main()
