"""From a row of logits to a drawn token: filters, distributions, draws."""
