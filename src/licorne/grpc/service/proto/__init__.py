"""The protocol as proto files, for other languages, and as `si.binpb`, which `make proto` makes of them for reflection.

`si.binpb` is a `FileDescriptorSet`. Modules generated from the proto files would refuse every version of protobuf that is
older than the generator, or newer by two major versions; these data can be read by all.
"""

from __future__ import annotations

from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool

_SET = descriptor_pb2.FileDescriptorSet.FromString(Path(__file__).with_name("si.binpb").read_bytes())

FIRST, V19 = [descriptor_pool.Default().AddSerializedFile(file.SerializeToString()) for file in _SET.file]
"""The descriptors of `si_seed.proto` and `si_v1.proto`."""
