"""Numbers, times, models and the ends of drafts as the window writes them."""
