"""What the server of child processes loads in tests: also what the Hub's client is made of, which downloads
and probes would load anew. Not the client: it reads the environment while it is imported."""

# ruff: noqa: F401

import asyncio
import concurrent.futures.thread
import importlib.metadata
import urllib.request

import filelock
import httpx2
import tqdm.auto
import yaml

import app.engine.engine
import app.engine.process.preloaded
