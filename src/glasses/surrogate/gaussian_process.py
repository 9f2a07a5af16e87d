from glasses.surrogate.fit import GaussianProcess

__all__ = ["GaussianProcess"]
