"""What the server of child processes loads in tests: the Hub's client too, which downloads and probes would
import anew, each for a quarter of a second."""

import app.engine.engine
import app.engine.process.preloaded
import app.hub.downloads.fetch
import app.hub.library.probe  # noqa: F401
