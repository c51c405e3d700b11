"""The ingredients of a build of llama.cpp: flags, compilers, GPU toolkit, this processor."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from console import SetupError, answer
from toolchains import look

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "packaging" / "locks"

# Raise it when this file builds differently from the same inputs.
RECIPE = "8"

# The engine's RPC backend serves second machines, and tests of offload without a GPU. Neither
# images (LLAVA) nor downloads (OPENSSL) go through the library.
BASE_CMAKE = ("-DGGML_NATIVE=ON", "-DGGML_RPC=ON", "-DLLAVA_BUILD=OFF", "-DLLAMA_OPENSSL=OFF")

# No part of the recipe, because it differs with the folder of this checkout: RECIPE stands for what it says.
OUR_CHANGES = shlex.quote(
    f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={Path(__file__).with_name('llama_cpp.cmake').as_posix()}"
)

# GCC 12 compiles ggml's AMX kernels into code that faults on the first batch of two tokens.
NO_AMX = ("-mno-amx-tile", "-mno-amx-int8", "-mno-amx-bf16")

GPU_CMAKE = {
    "none": (),
    "cuda": ("-DGGML_CUDA=ON",),
    "vulkan": ("-DGGML_VULKAN=ON",),
    "metal": ("-DGGML_METAL=ON",),
    "hip": ("-DGGML_HIP=ON",),
}

# Flags in /proc/cpuinfo that -march=native may turn into instructions. The others change with
# the kernel and would only cause builds nobody needs.
_X86_ISA = re.compile(
    r"^(sse|ssse|avx|amx|fma|f16c|bmi|adx|sha|gfni|v?aes|v?pclmul|popcnt|movbe|abm|rd|xsave|clwb"
    r"|clflush|movdir|serialize|pku|fsgsbase|cx16|mmx|3dnow|cldemote|waitpkg|pconfig|ptwrite)"
)


@dataclass(frozen=True)
class Choice:
    """The user's choices for a build: the backend, and flags from the environment."""

    gpu: str
    cmake_args: str = ""
    cflags: str = ""
    cxxflags: str = ""


@dataclass(frozen=True)
class Recipe:
    """Everything that affects the compiled result. Its hash names the wheel."""

    package: str
    gpu: str
    cmake_args: str
    cflags: str
    cxxflags: str
    cc: str
    cxx: str
    compilers: tuple[str, ...]
    toolkit: str
    machine: tuple[str, ...]
    recipe: str = RECIPE

    @property
    def key(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True)
        version = self.package.split()[0].partition("==")[2]
        return f"{version}-{self.gpu}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def default_gpu() -> str:
    """Return the backend of a first `make run`: Metal on Macs where llama.cpp always has it, else none."""
    return "metal" if sys.platform == "darwin" else "none"


def check_gpu(gpu: str) -> str:
    """Return the backend's name, or raise SetupError with the choices on this machine."""
    mac = sys.platform == "darwin"
    here = ("metal",) if mac else ("none", "cuda", "vulkan", "hip")
    if gpu == "none" and mac:
        return "metal"  # llama-cpp-python forces Metal on; offload nothing to keep it idle
    if gpu not in here:
        raise SetupError(f"GPU={gpu} is not a choice here.", f"Choose one of: {', '.join(here)}.")
    return gpu


def machine() -> tuple[str, ...]:
    """Name this processor as -march=native sees it. Fast, because every start asks for it."""
    name = (platform.system(), platform.machine())
    if sys.platform == "darwin":
        brand = answer(["sysctl", "-n", "machdep.cpu.brand_string"]) or ""
        return (*name, brand)
    flags: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
            for line in info:
                field, _, value = line.partition(":")
                if not line.strip() and flags:
                    break  # the first processor speaks for all
                if field.strip() in ("flags", "Features", "CPU part", "isa"):
                    flags[field.strip()] = value.strip()
    except OSError:
        return name
    if "flags" in flags:
        isa = sorted(flag for flag in flags["flags"].split() if _X86_ISA.match(flag))
        return (*name, " ".join(isa))
    return (*name, *(f"{key}={flags[key]}" for key in sorted(flags)))


def package_lock() -> str:
    """Return the locked requirement: name, version and the archive's hash."""
    lines = (LOCKS / "native.txt").read_text(encoding="utf-8").splitlines()
    kept = [line.strip(" \\") for line in lines if line.strip() and not line.startswith("#")]
    return " ".join(kept)


def make_recipe(choice: Choice) -> Recipe:
    """Find compilers, toolkit and processor. Raises SetupError if something is missing."""
    cc, cxx = find_compiler("CC", "cc", "gcc", "clang"), find_compiler("CXX", "c++", "g++", "clang++")
    toolkit = look(choice.gpu, cxx, choice.cmake_args, choice.cxxflags)
    no_amx = [flag for flag in NO_AMX if _accepts(cc, "c", flag) and _accepts(cxx, "c++", flag)]
    arguments = [*BASE_CMAKE, *GPU_CMAKE[choice.gpu]]
    # The last flag wins in CMake and in compilers: the user's flags follow ours, and safety flags come last.
    return Recipe(
        package=package_lock(),
        gpu=choice.gpu,
        cmake_args=" ".join([*arguments, choice.cmake_args]).strip(),
        cflags=" ".join([choice.cflags, *no_amx]).strip(),
        cxxflags=" ".join([choice.cxxflags, *no_amx]).strip(),
        cc=cc,
        cxx=cxx,
        compilers=tuple(_identity(compiler) for compiler in (cc, cxx)),
        toolkit=toolkit,
        machine=(*machine(), "-".join(platform.libc_ver())),
    )


def find_compiler(variable: str, *names: str) -> str:
    """The compiler in CMake's own order: the environment's variable, then the usual names. It is run once as
    a check."""
    own = os.environ.get(variable)
    for name in [own] if own else names:
        path = shutil.which(shlex.split(name)[0])
        if path is not None and answer([path, "--version"]) is not None:
            return name if own else path
    if own:
        raise SetupError(f"{variable}={own} cannot be run.", f"Correct or unset {variable}.")
    raise SetupError(f"There is no {'C' if variable == 'CC' else 'C++'} compiler.", _get_compiler())


def _get_compiler() -> str:
    if sys.platform == "darwin":
        return "Install Apple's with: xcode-select --install"
    commands = {
        "apt-get": "sudo apt-get install g++",
        "dnf": "sudo dnf install gcc-c++",
        "pacman": "sudo pacman -S gcc",
        "zypper": "sudo zypper install gcc-c++",
        "apk": "apk add g++",
    }
    known = [command for tool, command in commands.items() if shutil.which(tool)]
    return f"Install one with: {known[0]}" if known else "Install GCC or Clang with C++."


def _accepts(compiler: str, language: str, flag: str) -> bool:
    if platform.machine().lower() not in ("x86_64", "amd64", "i686"):
        return False
    command = [*shlex.split(compiler), "-Werror", flag, "-x", language, "-c", "-o", os.devnull]
    return answer([*command, os.devnull]) is not None


def _identity(compiler: str) -> str:
    parts = shlex.split(compiler)
    version = (answer([*parts, "--version"]) or "").partition("\n")[0]
    target = answer([*parts, "-dumpmachine"]) or ""
    return f"{version} for {target}"
