"""A curved valley that takes half a second to measure."""

import math
import time


def height(x, y):
    time.sleep(0.5)
    return math.log1p(100 * (y - x * x) ** 2 + (1 - x) ** 2)
