"""What JAX lacks on a CPU: fast random streams, small products, ordered LAPACK calls, lazy conditions, float64."""
