"""Builds licorne: the hot modules are compiled where that is possible, and run as plain Python where it is not.

A module is hot if it imports `cython`. The same `.py` files serve both ways (Cython's pure Python mode). What Cython
reads, their text with imports in C and the layout of their classes for each other, is derived from that text
(`tools/pxd.py`), never written by hand; so is what type checkers read of them in an installed package (`tools/pyi.py`),
compiled or not. What C has and Cython has no name for is declared in `tools/prefetch.pxd`.

A half-compiled package would be worse than none, since its halves could not share typed objects. So any failure,
be it Cython that refuses or a C compiler that is missing or broken, means that nothing is compiled: the package
installs all the same and is slower.

Environment variables:
    LICORNE_PURE=1              compile nothing
    LICORNE_REQUIRE_COMPILED=1  fail when compiling fails, instead of going on without
    LICORNE_SAFE=1              compile with checks of bounds, of None and of integer overflow
    LICORNE_CFLAGS="..."        flags for the C compiler, after those below: the last of two that differ counts
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

os.chdir(Path(__file__).resolve().parent)
sys.path.insert(0, "tools")

import known_warnings  # noqa: E402  these imports need the line above
import pxd  # noqa: E402
import pyi  # noqa: E402

PACKAGES = [Path("src", "licorne", room) for room in ("core", "si", "sim", "workload")]
"""Where hot modules are."""
PURE = os.environ.get("LICORNE_PURE") == "1"
REQUIRED = os.environ.get("LICORNE_REQUIRE_COMPILED") == "1"
SAFE = os.environ.get("LICORNE_SAFE") == "1"

# No contraction: a*b+c must round as the interpreter rounds it, or shares and scores differ from machine to machine.
# Overflow wraps and the bits of a double may be read as an integer. No -march: a wheel runs elsewhere.
FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing"]
FLAGS += os.environ.get("LICORNE_CFLAGS", "").split()
# Cython does not check the bounds of C arrays within objects; the compiler's sanitizer does.
SAFE_FLAGS = ["-fsanitize=bounds", "-fno-sanitize-recover=all"]
SAFE_LINK_FLAGS = ["-fsanitize=undefined"]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": SAFE,
    "cdivision": False,  # `//` and `%` round as Python's do
    "initializedcheck": SAFE,
    "nonecheck": SAFE,
    "overflowcheck": SAFE,
    "wraparound": False,
}
GENERATED = Path("build", "c")
END = "\r" if sys.stdout.isatty() else "\n"
"""A terminal shows progress in one line."""


def modules(chosen: Callable[[Path], bool]) -> dict[str, Path]:
    """List the modules of a kind, with their text."""
    paths = [path for folder in PACKAGES for path in sorted(folder.rglob("*.py")) if chosen(path)]
    return {".".join(path.with_suffix("").parts[1:]): path for path in paths}


def typed_by_stubs(path: Path) -> bool:
    """Say whether a type checker of others, which may have no Cython, needs a stub in place of a module's text."""
    return pxd.is_hot(path) or pxd.has_constants(path)


def extensions() -> list[Extension]:
    """List the hot modules, to be compiled."""
    flags = {"extra_compile_args": FLAGS, "extra_link_args": []}
    if SAFE:
        flags = {"extra_compile_args": FLAGS + SAFE_FLAGS, "extra_link_args": SAFE_LINK_FLAGS}
    return [Extension(name, [str(path)], **flags) for name, path in modules(pxd.is_hot).items() if not PURE]


class WithStubs(build_py):
    """Build the package, with a stub for each hot module; not where the sources themselves are installed."""

    def run(self) -> None:
        """Write the stubs beside the modules that were copied."""
        super().run()
        if not self.editable_mode:
            pyi.generate(modules(typed_by_stubs), Path(self.build_lib))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT002 - as in the base class
        """List the files made, for those who install them."""
        stubs = (
            []
            if self.editable_mode
            else [Path(self.build_lib, *name.split(".")).with_suffix(".pyi") for name in modules(typed_by_stubs)]
        )
        return [*super().get_outputs(include_bytecode), *map(str, stubs)]


class AllOrNothing(build_ext):
    """Compile everything or, if anything fails, leave nothing compiled behind."""

    def finalize_options(self) -> None:
        """Use the processors there are."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1
        self.compiled = 0

    def run(self) -> None:
        """Compile; on failure remove what was compiled and go on as a package without extensions."""
        in_place = bool(self.inplace)
        try:
            self.translate()
            super().run()
        except Exception as error:
            if REQUIRED:
                raise  # leaving what there was, to go on from when the fault is mended
            for extension in self.extensions:
                Path(self.build_lib, self.get_ext_filename(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            print(f"licorne: not compiled, the hot modules will run as plain Python: {error}", file=sys.stderr)
        if in_place:
            self.remove_leftovers()

    def build_extension(self, ext: Extension) -> None:
        """Compile a module, and show how far the work is: it takes minutes."""
        super().build_extension(ext)
        self.compiled += 1
        print(f"compiling the core: {self.compiled} of {len(self.extensions)} modules", end=END, flush=True)

    def remove_leftovers(self) -> None:
        """Remove from the sources what an earlier build compiled and this one did not: it would hide newer text."""
        made = {Path("src", self.get_ext_filename(extension.name)) for extension in self.extensions}
        for path in Path("src").rglob("*" + str(sysconfig.get_config_var("EXT_SUFFIX"))):
            if path not in made:
                path.unlink()

    def translate(self) -> None:
        """Turn the hot modules into C, those that changed, or all if the last build here had other settings."""
        from Cython.Build import cythonize  # noqa: PLC0415  may be missing, which is no more than another failure

        pxd.generate(
            GENERATED / "src",
            {extension.name: Path(extension.sources[0]) for extension in self.extensions},
            PACKAGES,
            modules(pxd.has_constants),
        )
        settings = repr((FLAGS, DIRECTIVES))
        note = GENERATED / "settings"
        known = note.exists() and note.read_text(encoding="utf-8") == settings
        note.unlink(missing_ok=True)
        tools = str(Path("tools").resolve())
        # In the folder where the texts for Cython have the paths of the modules, which tracebacks show.
        with known_warnings.left_out(), chdir(GENERATED):
            translated = cythonize(
                self.extensions,
                include_path=["src", tools],
                force=not known,
                nthreads=self.parallel,
                quiet=True,
                compiler_directives=DIRECTIVES,
            )
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = [str(GENERATED / source) for source in sources[extension.name]]
        note.write_text(settings, encoding="utf-8")

    def get_outputs(self) -> list[str]:
        """List the files made, for the wheel's record."""
        return super().get_outputs() if self.extensions else []

    def get_output_mapping(self) -> dict[str, str]:
        """Map the files made to where they lie in an editable installation."""
        return super().get_output_mapping() if self.extensions else {}


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNothing, "build_py": WithStubs})
