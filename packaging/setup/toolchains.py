"""Checks of a GPU backend's toolchain before anything is downloaded or compiled.

A compilation fails only after minutes, with a compiler's message; these checks take seconds. They check what
the locked llama.cpp needs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from console import CommandError, SetupError, answer, run

# vk::LayerSettingEXT, which ggml-vulkan.cpp uses unasked, came with it.
VULKAN_HEADERS = (1, 3, 272)
# ggml-hip's CMakeLists.txt refuses older ones.
HIP = (6, 1)

_GET_VULKAN = (
    "On Debian 13, Ubuntu 24.04 and later: apt-get install glslc libvulkan-dev spirv-headers."
    " Elsewhere: LunarG's Vulkan SDK (vulkan.lunarg.com), with its setup-env.sh."
)
_NEWER_HEADERS = (
    "Debian 13, Ubuntu 24.04 and LunarG's Vulkan SDK (vulkan.lunarg.com) have them. Or unpack"
    " github.com/KhronosGroup/Vulkan-Headers and call, where DIR is its include folder:\n"
    "        CMAKE_ARGS=-DVulkan_INCLUDE_DIR=DIR CXXFLAGS=-IDIR make run GPU=vulkan"
)


def look(gpu: str, cxx: str, cmake_args: str = "", cxxflags: str = "") -> str:
    """Return the names of the backend's toolkit and GPUs; a build for this machine depends on both.

    Raises SetupError if something is missing or too old.
    """
    match gpu:
        case "cuda":
            return _cuda(cmake_args)
        case "vulkan":
            return _vulkan(cxx, cmake_args, cxxflags)
        case "hip":
            return _hip()
        case "metal":
            return _metal()
    return ""


def _cuda(cmake_args: str) -> str:
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if nvcc is None and Path("/usr/local/cuda/bin/nvcc").is_file():
        nvcc = os.environ["CUDACXX"] = "/usr/local/cuda/bin/nvcc"
    version = answer([nvcc, "--version"]) if nvcc else None
    if nvcc is None or version is None:
        raise SetupError(
            "GPU=cuda needs NVIDIA's CUDA toolkit; nvcc was not found.",
            "Install it and put nvcc on PATH, or set CUDACXX to it.",
        )
    gpus = answer(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    if gpus is None and "CMAKE_CUDA_ARCHITECTURES" not in cmake_args:
        raise SetupError(
            "GPU=cuda builds for this machine's GPU, and nvidia-smi shows none.",
            "To build for a different GPU: CMAKE_ARGS=-DCMAKE_CUDA_ARCHITECTURES=90 make run"
            " GPU=cuda (with its number).",
        )
    host = os.environ.get("CUDAHOSTCXX")
    try:
        _compile([nvcc, "-std=c++17", *(["-ccbin", host] if host else [])], _CUDA_TRIAL, ".cu")
    except CommandError as error:
        raise SetupError(
            f"GPU=cuda needs an nvcc that compiles; this one says: {_first_error(error.output)}",
            "Each toolkit supports certain host compilers: name one with CUDAHOSTCXX, such as g++-12, or"
            " install a newer toolkit, with cuBLAS.",
        ) from None
    return f"{version.splitlines()[-1]}; {_sorted_words(gpus)}"


_CUDA_TRIAL = "#include <cublas_v2.h>\n#include <cuda_fp16.h>\n__global__ void trial() {}\n"


def _vulkan(cxx: str, cmake_args: str, cxxflags: str) -> str:
    glslc = answer(["glslc", "--version"])
    if glslc is None:
        raise SetupError("GPU=vulkan needs the Vulkan shader compiler; glslc was not found.", _GET_VULKAN)
    options = (re.fullmatch(r"-DVulkan_INCLUDE_DIR(?::\w+)?=(.+)", word) for word in shlex.split(cmake_args))
    named = [option[1] for option in options if option]
    kit = os.environ.get("VULKAN_SDK")
    folders = [*named, *([f"{kit}/include"] if kit else [])]
    compiler = [*shlex.split(cxx), *shlex.split(cxxflags), *(f"-I{folder}" for folder in folders)]
    version = _vulkan_version(compiler)
    if version is None:
        raise SetupError("GPU=vulkan needs Vulkan's headers; vulkan.h was not found.", _GET_VULKAN)
    if version < VULKAN_HEADERS:
        needed, found = _dotted(VULKAN_HEADERS), _dotted(version)
        raise SetupError(
            f"GPU=vulkan needs Vulkan headers {needed} or later; these are {found}.", _NEWER_HEADERS
        )
    if _preprocessed(compiler, "#include <spirv/unified1/spirv.hpp>\n") is None:
        raise SetupError("GPU=vulkan needs the SPIR-V headers; spirv.hpp was not found.", _GET_VULKAN)
    return f"{glslc.splitlines()[0]}; Vulkan headers {_dotted(version)}"


def _vulkan_version(compiler: Sequence[str]) -> tuple[int, ...] | None:
    source = "#include <vulkan/vulkan_core.h>\nversion VK_HEADER_VERSION_COMPLETE\n"
    text = _preprocessed(compiler, source)
    if text is None:
        return None
    # Variant, major, minor and patch, each in a cast of its own.
    numbers = re.findall(r"\(uint32_t\)\s*\((\d+)\)", text.splitlines()[-1])
    return tuple(map(int, numbers))[-3:]


def _hip() -> str:
    version = answer(["hipconfig", "--version"])
    if version is None:
        raise SetupError(
            "GPU=hip needs AMD's ROCm; hipconfig was not found.",
            "Install ROCm's HIP SDK and put its bin folder on PATH.",
        )
    found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if found < HIP:
        raise SetupError(
            f"GPU=hip needs ROCm {_dotted(HIP)} or later; this is {_dotted(found)}.",
            "Install a newer ROCm (rocm.docs.amd.com), and put its bin folder on PATH.",
        )
    root = os.environ.get("ROCM_PATH") or ("/opt/rocm" if Path("/opt/rocm").is_dir() else "/usr")
    headers = {name: Path(root, "include", name, f"{name}.h") for name in ("hipblas", "rocblas")}
    if missing := [name for name, header in headers.items() if not header.is_file()]:
        raise SetupError(
            f"GPU=hip needs {' and '.join(missing)}; there is none in {root}.",
            f"Install {' and '.join(f'{name}-dev' for name in missing)}, or set ROCM_PATH.",
        )
    clang = answer(["hipconfig", "-l"])
    if clang:
        os.environ.setdefault("HIPCXX", f"{clang}/clang")
    return f"{version}; {_sorted_words(answer(['rocm_agent_enumerator']))}"


def _metal() -> str:
    kit = answer(["xcrun", "--show-sdk-path"])
    if kit is None or not Path(kit, "System/Library/Frameworks/Metal.framework").is_dir():
        raise SetupError(
            "Metal's headers were not found: Apple's command line tools are missing.",
            "Install them with: xcode-select --install",
        )
    return answer(["xcrun", "--show-sdk-version"]) or ""


def _preprocessed(compiler: Sequence[str], source: str) -> str | None:
    """The preprocessor's output; None if it fails because a header is missing."""
    try:
        return _compile([*compiler, "-E", "-P"], source, ".cpp", output=())
    except CommandError:
        return None


def _compile(
    compiler: Sequence[str], source: str, suffix: str, output: Sequence[str] = ("-c", "-o", os.devnull)
) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"trial{suffix}")
        file.write_text(source, encoding="utf-8")
        return run([*compiler, *output, str(file)])


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "nothing")[:200]


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _sorted_words(text: str | None) -> str:
    return " ".join(sorted(set((text or "").split())))
