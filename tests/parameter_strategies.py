"""Parameters of every kind, for property tests of spaces."""

from hypothesis import strategies as st

from glasses import Choice, Float, Int

floats = st.builds(lambda low, width: Float(low, low + width), st.floats(-1e6, 1e6), st.floats(1e-1, 1e6))
log_floats = st.builds(lambda low, ratio: Float(low, low * ratio, log=True), st.floats(1e-8, 1e3), st.floats(1.1, 1e6))
stepped = st.builds(
    lambda low, step, count: Float(low, low + step * count, step=step),
    st.floats(-100, 100),
    st.sampled_from([0.1, 0.25, 1.0, 3.0]),
    st.integers(1, 50),
)
integers = st.builds(
    lambda low, width, step: Int(low, low + width, step=min(step, width)),
    st.integers(-100, 100),
    st.integers(1, 300),
    st.integers(1, 7),
)
log_integers = st.builds(lambda low, width: Int(low, low + width, log=True), st.integers(1, 50), st.integers(1, 5000))
choices = st.builds(lambda n: Choice([f"value {i}" for i in range(n)]), st.integers(2, 12))
parameters = st.one_of(floats, log_floats, stepped, integers, log_integers, choices)
