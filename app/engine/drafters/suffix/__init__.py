"""The drafter that follows suffix automata."""
