"""A round in detail: a card for each drafted token, and for the token that the target gave itself."""
