"""What JAX lacks on a CPU: fast random streams, small products, LAPACK calls in sequence, lazy conditions, float64."""
