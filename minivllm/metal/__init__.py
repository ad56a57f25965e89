"""A Metal kernel, and a runner that executes Metal kernels without a GPU."""
