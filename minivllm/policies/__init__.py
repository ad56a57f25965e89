"""Cache designs of four engines over ids alone, so that the same traffic can tell them apart. No model, no tensors."""
