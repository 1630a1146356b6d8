"""Reads event files as TensorBoard does, knowing nothing of Keelson's own messages.

The framing is tensorflow/core/lib/io/record_writer.h's: uint64 length, masked CRC-32C of the length, data, masked CRC-32C
of the data. The messages are declared here with the field numbers of TensorFlow and of TensorBoard's plugin "hparams".
"""

import os
import struct

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf import message as message_type
from google.protobuf import struct_pb2  # noqa: F401  (brings google/protobuf/struct.proto into the pool)

try:
    from google.protobuf import unknown_fields
except ImportError:  # an earlier protobuf, whose messages say it themselves
    unknown_fields = None

FLOAT, STRING = 1, 7  # tensorflow.DataType
SUCCESS = 1  # tensorboard.hparams.Status
DATA_CLASS_TENSOR = 2  # tensorboard.DataClass

# message -> fields: (name, number, type), a repeated type as [type], a member of a oneof as (…, oneof).
_MESSAGES = {
    "Event": [
        ("wall_time", 1, "double"),
        ("step", 2, "int64"),
        ("file_version", 3, "string", "what"),
        ("summary", 5, "Summary", "what"),
        ("session_log", 7, "SessionLog", "what"),
        ("source_metadata", 10, "SourceMetadata"),
    ],
    "SourceMetadata": [("writer", 1, "string")],
    "SessionLog": [("status", 1, "int32"), ("checkpoint_path", 2, "string"), ("msg", 3, "string")],
    "Summary": [("value", 1, ["SummaryValue"])],
    "SummaryValue": [
        ("tag", 1, "string"),
        ("simple_value", 2, "float", "value"),
        ("histo", 5, "HistogramProto", "value"),
        ("tensor", 8, "TensorProto", "value"),
        ("metadata", 9, "SummaryMetadata"),
    ],
    "SummaryMetadata": [
        ("plugin_data", 1, "PluginData"),
        ("display_name", 2, "string"),
        ("summary_description", 3, "string"),
        ("data_class", 4, "int32"),
    ],
    "PluginData": [("plugin_name", 1, "string"), ("content", 2, "bytes")],
    "HistogramProto": [
        ("min", 1, "double"),
        ("max", 2, "double"),
        ("num", 3, "double"),
        ("sum", 4, "double"),
        ("sum_squares", 5, "double"),
        ("bucket_limit", 6, ["double"]),
        ("bucket", 7, ["double"]),
    ],
    "TensorProto": [
        ("dtype", 1, "int32"),
        ("tensor_shape", 2, "TensorShapeProto"),
        ("version_number", 3, "int32"),
        ("tensor_content", 4, "bytes"),
        ("float_val", 5, ["float"]),
        ("string_val", 8, ["bytes"]),
    ],
    "TensorShapeProto": [("dim", 2, ["Dim"]), ("unknown_rank", 3, "bool")],
    "Dim": [("size", 1, "int64"), ("name", 2, "string")],
    # tensorboard/plugins/hparams: plugin_data.proto, api.proto
    "HParamsPluginData": [
        ("version", 1, "int32"),
        ("session_start_info", 3, "SessionStartInfo", "data"),
        ("session_end_info", 4, "SessionEndInfo", "data"),
    ],
    "SessionEndInfo": [("status", 1, "int32"), ("end_time_secs", 2, "double")],
    # A map is a repeated message with key and value.
    "SessionStartInfo": [
        ("hparams", 1, ["HParam"]),
        ("model_uri", 2, "string"),
        ("group_name", 4, "string"),
        ("start_time_secs", 5, "double"),
    ],
    "HParam": [("key", 1, "string"), ("value", 2, ".google.protobuf.Value")],
}


def _declare(messages):
    """The messages' classes, by name."""
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="tensorboard_reader.proto",
        package="tensorboard_reader",
        syntax="proto3",
        dependency=["google/protobuf/struct.proto"],
    )
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        oneofs = []
        for field_name, number, kind, *oneof in fields:
            repeated = isinstance(kind, list)
            kind = kind[0] if repeated else kind
            field = message.field.add(name=field_name, number=number)
            field.label = field_type.LABEL_REPEATED if repeated else field_type.LABEL_OPTIONAL
            if kind in messages or kind.startswith("."):
                field.type = field_type.TYPE_MESSAGE
                field.type_name = kind if kind.startswith(".") else f".tensorboard_reader.{kind}"
            else:
                field.type = getattr(field_type, f"TYPE_{kind.upper()}")
            if oneof:
                if oneof[0] not in oneofs:
                    oneofs.append(oneof[0])
                    message.oneof_decl.add(name=oneof[0])
                field.oneof_index = oneofs.index(oneof[0])
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    # Its name depends on protobuf's version.
    class_of = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: class_of(pool.FindMessageTypeByName(f"tensorboard_reader.{name}")) for name in messages}


_CLASSES = _declare(_MESSAGES)


def _crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_records(path):
    """All records of a TFRecord file; ValueError where a checksum is wrong or the file ends within a record."""
    with open(path, "rb") as file:
        content = file.read()
    records, offset = [], 0
    while offset < len(content):
        if offset + 12 > len(content):
            raise ValueError(f"{path}: ends within the header at {offset}")
        length, length_crc = struct.unpack_from("<QI", content, offset)
        if masked_crc32c(content[offset : offset + 8]) != length_crc:
            raise ValueError(f"{path}: wrong checksum of the length at {offset}")
        begin = offset + 12
        if begin + length + 4 > len(content):
            raise ValueError(f"{path}: ends within the record at {offset}")
        data = content[begin : begin + length]
        if masked_crc32c(data) != struct.unpack_from("<I", content, begin + length)[0]:
            raise ValueError(f"{path}: wrong checksum of the record at {offset}")
        records.append(data)
        offset = begin + length + 4
    return records


def _unknown_fields(message):
    if unknown_fields is None:
        return message.UnknownFields()
    return unknown_fields.UnknownFieldSet(message)


def _check_known(message):
    """ValueError where the message has a field that is not declared here."""
    numbers = [field.field_number for field in _unknown_fields(message)]
    if numbers:
        raise ValueError(f"{message.DESCRIPTOR.name}: unknown fields {numbers}")
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.file.package != "tensorboard_reader":
            continue
        for part in [value] if isinstance(value, message_type.Message) else value:
            _check_known(part)


def parse(name, data):
    message = _CLASSES[name].FromString(data)
    _check_known(message)
    return message


def read_events(directory):
    """The events with a summary of all event files right in the directory, in the order of the files' names."""
    events = []
    for name in sorted(os.listdir(directory)):
        if ".tfevents." not in name:
            continue
        records = [parse("Event", record) for record in read_records(os.path.join(directory, name))]
        if not records or records[0].file_version != "brain.Event:2":
            raise ValueError(f"{directory}/{name}: expected a file of the version brain.Event:2")
        if records[0].source_metadata.writer != "keelson":
            raise ValueError(f"{directory}/{name}: expected a file that says it is Keelson's")
        events.extend(records[1:])
    return events


def read_values(directory):
    """tag -> [(step, wall time, value)], each value a tensorflow.Summary.Value."""
    values = {}
    for event in read_events(directory):
        for value in event.summary.value:
            values.setdefault(value.tag, []).append((event.step, event.wall_time, value))
    return values
