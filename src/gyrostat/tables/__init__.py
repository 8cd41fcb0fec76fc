"""Tables of users: reading them, fitting and filling them, saved models, and the pages that explain a fit."""
