"""What folders of results have in common: the fingerprint of the code that computed them."""
