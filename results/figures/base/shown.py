"""A figure that shows itself in a notebook: matplotlib's own does so with pyplot alone."""

from io import BytesIO

from matplotlib import figure


class Figure(figure.Figure):
    """A matplotlib figure without global state."""

    def _repr_png_(self) -> bytes:
        drawn = BytesIO()
        self.savefig(drawn, format="png")
        return drawn.getvalue()
