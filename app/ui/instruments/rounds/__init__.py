"""The table of rounds: what its rows say, its model, and the table itself."""
