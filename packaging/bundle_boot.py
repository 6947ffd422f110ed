"""The first Python of the binary: finds extension modules in the running file, then is the `bcd` command.

The packer leaves `bundle_index` beside this module: `EXTENSIONS` maps a module's name to the place of its shared object
and to the libraries that it wants first, `LIBRARIES` maps a library's soname to the same. A place is (offset, size),
bytes in this file.
"""

import os
import sys
from _frozen_importlib import ModuleSpec  # importlib's own, which is in the zip, waits for the module that inflates
from _frozen_importlib_external import ExtensionFileLoader

import _bundle  # type: ignore[import-not-found]  # the launcher's own
import bundle_index  # type: ignore[import-not-found]  # written by the packer

_linked: set[str] = set()


def _link(names: list[str]) -> None:
    for name in names:
        if name not in _linked:
            place, wanted = bundle_index.LIBRARIES[name]
            _link(wanted)
            descriptor, path = _bundle.hold(name, *place)
            try:
                _bundle.link(path)
            finally:
                os.close(descriptor)
            _linked.add(name)


class _Loader:
    """Loads one extension module from sealed memory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> object:  # noqa: ARG002  # the protocol's shape
        place, wanted = bundle_index.EXTENSIONS[self._name]
        _link(wanted)
        descriptor, path = _bundle.hold(self._name, *place)
        try:
            self._real = ExtensionFileLoader(self._name, path)
            return self._real.create_module(ModuleSpec(self._name, self._real, origin=path))
        except OSError as error:
            # What `import` may raise, so that whoever can do without it does.
            raise ImportError(f"{self._name}: {error}", name=self._name) from error
        finally:
            os.close(descriptor)

    def exec_module(self, module: object) -> None:
        self._real.exec_module(module)  # type: ignore[arg-type]  # `types` is not to be had yet


class _Finder:
    """Knows the extension modules of the binary."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG004  # as above
        if name not in bundle_index.EXTENSIONS:
            return None
        return ModuleSpec(name, _Loader(name), origin=f"{sys.path[0]}/{name.replace('.', '/')}")  # type: ignore[arg-type]  # by its shape


sys.meta_path.insert(2, _Finder)  # after what is built in and what is frozen
sys.frozen = True  # type: ignore[attr-defined]  # bcd itself is packed: there is no source to make others from

from bcd.cli import entry  # noqa: E402  # only now can it be found

entry()
