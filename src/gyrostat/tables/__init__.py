"""Tables of people with data: reading them, fitting them, and saying what was found."""
