"""The speculative loop: propose, verify, emit."""
