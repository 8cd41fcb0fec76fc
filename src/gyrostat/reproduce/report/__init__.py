"""The report ``index.html``: one page of all figures and claims in a results folder."""
