"""What the server of child processes loads in tests: also what the Hub's client is made of, which downloads
and probes would load anew. Not the client: it reads the environment while it is imported."""

from importlib import import_module

for name in (
    "asyncio",
    "concurrent.futures.thread",
    "filelock",
    "httpx2",
    "importlib.metadata",
    "tqdm.auto",
    "urllib.request",
    "yaml",
    "app.engine.engine",
    "app.engine.process.preloaded",
):
    import_module(name)
