"""The commands, by what they are about. What is slow to import is imported inside them."""
