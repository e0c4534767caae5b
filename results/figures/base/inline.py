"""A figure that displays itself in a notebook; matplotlib's own figures need pyplot for that."""

from io import BytesIO

from matplotlib import figure


class Figure(figure.Figure):
    """A matplotlib figure without global state."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, for a notebook."""
        image_buffer = BytesIO()
        self.savefig(image_buffer, format="png")
        return image_buffer.getvalue()
