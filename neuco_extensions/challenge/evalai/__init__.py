"""EvalAI: a worker that evaluates its submissions on the host's machine, and nothing of it but numbers goes out."""
