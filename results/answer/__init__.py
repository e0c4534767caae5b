"""Tables, predictions, and the answer of a comparison."""
