"""What a picture shows: the figure that was saved with its artists, and the pixels that arrived in the file."""

from contextlib import contextmanager
from unittest import mock

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread


class Picture:
    """The figure behind a file; ``figure`` is known once the drawing is done."""

    figure = None

    def curve(self, panel, label):
        """The (n, 2) points of the line of this label in this panel."""
        (line,) = [line for line in self.figure.axes[panel].lines if line.get_label() == label]
        return np.column_stack([line.get_xdata(), line.get_ydata()])

    def marks(self, panel, marker):
        """The (n, 2) points of all lines with this marker in this panel, in the order they were drawn."""
        lines = [line for line in self.figure.axes[panel].lines if line.get_marker() == marker and len(line.get_xdata())]
        return np.concatenate([np.column_stack([line.get_xdata(), line.get_ydata()]) for line in lines])

    def ticks(self, panel):
        """The labels of the vertical axis."""
        return [label.get_text() for label in self.figure.axes[panel].get_yticklabels()]


@contextmanager
def drawn(path):
    """The picture that is saved to ``path`` in here. Afterwards the file has its size, and no panel of it is blank."""
    picture, saved = Picture(), {}
    original = Figure.savefig

    def savefig(figure, target, **options):
        original(figure, target, **options)
        saved[str(target)] = figure, options["dpi"]

    with mock.patch.object(Figure, "savefig", savefig):
        yield picture
    picture.figure, dpi = saved[str(path)]
    pixels = imread(path)[..., :3]
    width, height = np.round(picture.figure.get_size_inches() * dpi).astype(int)
    assert abs(pixels.shape[0] - height) <= 1
    assert abs(pixels.shape[1] - width) <= 1
    for panel in picture.figure.axes:
        if not (panel.axison and panel.get_visible()):  # a grid may have more cells than there is to show
            continue
        (left, low), (right, high) = panel.get_position().get_points()  # parts of the figure, from below
        inside = pixels[
            int((1 - high) * height) + 4 : int((1 - low) * height) - 4, int(left * width) + 4 : int(right * width) - 4
        ]
        assert colours(inside) > 1, f"panel {panel.get_title()!r} is blank"


def colours(pixels):
    """How many different colours an image or a part of it has."""
    return len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0))
