"""What can be had from the Hub: the catalogue, search, a repository's page."""
