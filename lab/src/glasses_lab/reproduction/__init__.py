"""The paper's experiments: figures of the look-ahead loss and of the predicted steps, and the tables of the campaigns."""
