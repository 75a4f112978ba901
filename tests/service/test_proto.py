"""The proto files agree with the tables of `licorne.si`, and what reflection reads with the proto files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor

import licorne.grpc.service.proto
from licorne.grpc.service.proto import FIRST, V19
from licorne.si import first, v19
from licorne.si._schema import Field, fields
from licorne.si.rpc import METHODS, SERVICE
from si.declared import RESERVED, messages_of

PROTO = Path(licorne.grpc.service.proto.__file__).parent
CASES: list[tuple[Any, Any]] = [(v19, V19), (first, FIRST)]
SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_ENUM: "enum",
}


def kind_of(field: Any) -> tuple[str, bool]:
    """The kind of a field as our tables have it, and whether it repeats."""
    if field.message_type is None:
        return SCALARS[field.type], field.is_repeated
    if field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        return ("map" if value.message_type is None else "quantities"), False
    return ("amounts" if field.message_type.name == "Resource" else "message"), field.is_repeated


def kind_in_table(field: Field) -> tuple[str, bool]:
    return field.kind, field.repeated


@pytest.mark.parametrize(("dialect", "described"), CASES, ids=["1.9", "first"])
def test_messages_and_fields_are_those_of_the_tables(dialect: Any, described: Any) -> None:
    made = described.message_types_by_name
    assert sorted(made) == sorted(message.__name__ for message in messages_of(dialect))
    for message in messages_of(dialect):
        found = made[message.__name__].fields_by_name
        ours = {field.name: field for field in fields(message)}
        assert sorted(found) == sorted(ours), message
        for name, field in ours.items():
            assert (found[name].number, kind_of(found[name])) == (field.number, kind_in_table(field)), name
            if field.kind == "message":
                assert field.type is not None
                assert found[name].message_type.name == field.type.__name__
            if field.kind == "enum":
                assert field.type is not None
                assert {value.name: value.number for value in found[name].enum_type.values} == {
                    member.name: member.value for member in field.type
                }
            oneof = found[name].containing_oneof
            assert (oneof.name if oneof else "") == field.oneof


def test_old_numbers_are_reserved() -> None:
    for message, names in RESERVED.items():
        proto = descriptor_pb2.DescriptorProto()
        V19.message_types_by_name[message.__name__].CopyToProto(proto)
        numbers = {number for found in proto.reserved_range for number in range(found.start, found.end)}
        assert numbers == set(names)
        assert sorted(proto.reserved_name) == sorted(names.values())


def test_the_service_has_the_methods_that_are_served() -> None:
    described = V19.services_by_name["Scheduler"]
    assert described.full_name == SERVICE
    assert {method.name for method in described.methods} == {"RegisterResourceManager", *METHODS}
    for method in described.methods:
        streams = method.name in METHODS
        assert (method.client_streaming, method.server_streaming) == (streams, streams)


def test_the_option_for_secrets_has_its_number() -> None:
    option = V19.extensions_by_name["si_secret"]
    assert (option.number, option.containing_type.full_name) == (1059, "google.protobuf.FieldOptions")


def test_what_reflection_reads_is_current(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is not installed")
    root = PROTO.parents[3]
    names = sorted(path.relative_to(root).as_posix() for path in PROTO.glob("*.proto"))
    out = tmp_path / "set"
    include = Path(protoc.__file__).parent / "_proto"
    assert protoc.main(["protoc", f"-I{root}", f"-I{include}", f"--descriptor_set_out={out}", *names]) == 0
    made = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    committed = descriptor_pb2.FileDescriptorSet.FromString((PROTO / "si.binpb").read_bytes())
    assert made == committed, "run `make proto`"
    assert [file.name for file in made.file] == [described.name for described in (FIRST, V19)]
