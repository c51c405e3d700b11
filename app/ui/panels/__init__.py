"""Forms, chips and the panels that open from them."""
