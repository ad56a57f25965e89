"""Models: finding, fetching, converting and loading them, their tokenizers, and one decoder for all."""
