"""The whole answer in figures: where drafts end, what a wider one would win, how sure the target is."""
