"""Parameters of every kind and a point of them, for the tests of the peers' adapters."""

from glasses import Choice, Float, Int

PARAMETERS = {
    "rate": Float(1e-4, 1.0, log=True),
    "angle": Float(-90.0, 90.0),
    "layers": Int(1, 5),
    "units": Int(4, 256, log=True),
    "drop": Float(0.0, 0.5, step=0.1),
    "kind": Choice([None, "b", 3]),
}
POINT = {"rate": 1e-2, "angle": 45.0, "layers": 3, "units": 32, "drop": 0.3, "kind": 3}
