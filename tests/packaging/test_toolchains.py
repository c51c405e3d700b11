"""What set-up says of a GPU's tool chain before anything is compiled: in seconds, with what is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

SETUP = Path(__file__).parents[2] / "packaging" / "setup"
SCRIPT = """
import sys
from shlex import quote
from console import SetupError
from toolchains import look
try:
    print(look(*sys.argv[1:]))
except SetupError as error:
    sys.exit(f"{error.message}\\n{error.hint}")
"""
CORE = """
#define VK_MAKE_API_VERSION(variant, major, minor, patch) \\
    ((((uint32_t)(variant)) << 29U) | (((uint32_t)(major)) << 22U) | \\
     (((uint32_t)(minor)) << 12U) | ((uint32_t)(patch)))
#define VK_HEADER_VERSION {patch}
#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, 1, {minor}, VK_HEADER_VERSION)
"""  # as the real header spells it
needs_compiler = pytest.mark.skipif(
    os.name != "posix" or shutil.which("c++") is None, reason="there is no C++ compiler"
)


class Machine:
    """A machine with the tools that a test puts there; their answers are all that is theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.environment: dict[str, str] = {}

    def tool(self, name: str, *answers: str) -> None:
        """A program that answers so to its first argument, and fails for all others."""
        cases = "\n".join(answers)
        script = self.bin / name
        script.write_text(
            f'#!/bin/sh\ncase "$1" in\n{cases}\n*) echo "error: not this way"; exit 1;;\nesac\n'
        )
        script.chmod(0o755)

    def headers(self, minor: int, patch: int, *, spirv: bool = True) -> Path:
        include = self.folder / f"headers-{minor}-{patch}"
        (include / "vulkan").mkdir(parents=True)
        (include / "vulkan" / "vulkan_core.h").write_text(CORE.format(minor=minor, patch=patch))
        if spirv:
            (include / "spirv" / "unified1").mkdir(parents=True)
            (include / "spirv" / "unified1" / "spirv.hpp").touch()
        return include

    def look(self, gpu: str, cmake_args: str = "") -> tuple[int, str]:
        """The exit code, and what was said."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        bare = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, gpu, "c++ -nostdinc", cmake_args, ""],
            cwd=SETUP,
            env=bare | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).strip()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@needs_compiler
def test_vulkan_headers_that_are_too_old_are_refused(machine: Machine) -> None:
    machine.tool("glslc", "--version) echo shaderc;;")
    code, said = machine.look("vulkan", f"-DVulkan_INCLUDE_DIR={quote(str(machine.headers(3, 239)))}")
    assert code == 1
    assert said.startswith("GPU=vulkan needs Vulkan headers 1.3.272 or later; these are 1.3.239.")
    assert "Debian 13" in said and "Vulkan_INCLUDE_DIR" in said


@needs_compiler
@pytest.mark.parametrize(("minor", "patch"), [(3, 272), (4, 0), (4, 309)])
def test_vulkan_headers_that_are_new_enough_are_named(machine: Machine, minor: int, patch: int) -> None:
    machine.tool("glslc", "--version) echo shaderc;;")
    include = machine.headers(minor, patch)
    assert machine.look("vulkan", f"-DVulkan_INCLUDE_DIR:PATH={quote(str(include))}") == (
        0,
        f"shaderc; Vulkan headers 1.{minor}.{patch}",
    )


@needs_compiler
def test_what_vulkan_lacks_is_named(machine: Machine) -> None:
    if shutil.which("glslc") is None:
        assert machine.look("vulkan")[1].startswith("GPU=vulkan needs the Vulkan shader compiler")
    machine.tool("glslc", "--version) echo shaderc;;")
    assert machine.look("vulkan")[1].startswith("GPU=vulkan needs Vulkan's headers")
    include = machine.headers(4, 309, spirv=False)
    assert machine.look("vulkan", f"-DVulkan_INCLUDE_DIR={include}")[1].startswith(
        "GPU=vulkan needs the SPIR-V headers"
    )


@needs_compiler
def test_an_nvcc_that_cannot_compile_is_refused_with_its_words(machine: Machine) -> None:
    machine.tool("nvidia-smi", "--query-gpu=compute_cap) echo 9.0;;")
    version = "--version) echo release 12.4;;"
    machine.tool("nvcc", version, "-std*) echo 'error: unsupported GNU version'; exit 1;;")
    code, said = machine.look("cuda")
    assert code == 1 and "this one says: error: unsupported GNU version" in said and "CUDAHOSTCXX" in said
    machine.tool("nvcc", version, "-std*) exit 0;;")
    assert machine.look("cuda") == (0, "release 12.4; 9.0")


@needs_compiler
def test_a_rocm_that_is_too_old_or_lacks_libraries_is_refused(machine: Machine) -> None:
    machine.environment["ROCM_PATH"] = str(machine.folder)
    machine.tool("hipconfig", "--version) echo 5.7.31921-1949b1621;;", "-l) echo /llvm;;")
    assert "needs ROCm 6.1 or later; this is 5.7." in machine.look("hip")[1]
    machine.tool("hipconfig", "--version) echo 6.4.2;;", "-l) echo /llvm;;")
    assert "GPU=hip needs hipblas and rocblas; there is none in" in machine.look("hip")[1]
    for name in ("hipblas", "rocblas"):
        (machine.folder / "include" / name).mkdir(parents=True)
        (machine.folder / "include" / name / f"{name}.h").touch()
    assert machine.look("hip") == (0, "6.4.2;")


@needs_compiler
def test_metal_without_apples_tools_is_refused(machine: Machine) -> None:
    machine.tool("xcrun", f"--show-sdk-path) echo {machine.folder};;")
    assert "xcode-select --install" in machine.look("metal")[1]
    (machine.folder / "System/Library/Frameworks/Metal.framework").mkdir(parents=True)
    assert machine.look("metal")[0] == 0
