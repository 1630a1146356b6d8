#include "core/config/config_reference.h"

#include <google/protobuf/descriptor.pb.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace keelson {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::SourceLocation;

// Each line of a comment begins with the space behind its slashes.
std::string CommentText(const SourceLocation& location) {
  std::vector<std::string> lines;
  for (const std::string& comment : {location.leading_comments, location.trailing_comments}) {
    if (comment.empty()) continue;
    const std::string text(absl::StripSuffix(comment, "\n"));
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      lines.emplace_back(absl::StripTrailingAsciiWhitespace(absl::StripPrefix(line, " ")));
    }
  }
  return absl::StrJoin(lines, "\n");
}

template <typename T>
std::string SourceComment(const T& descriptor) {
  SourceLocation location;
  return descriptor.GetSourceLocation(&location) ? CommentText(location) : "";
}

// Whether the value is the one that a field has which is not set; its comment names the default.
bool IsUnspecified(const EnumValueDescriptor& value) {
  return value.number() == 0 && absl::EndsWith(value.name(), "UNSPECIFIED");
}

std::string ValuesText(const EnumDescriptor& values) {
  std::vector<std::string> names;
  for (int i = 0; i < values.value_count(); ++i) {
    if (!IsUnspecified(*values.value(i))) names.push_back(values.value(i)->name());
  }
  if (names.size() < 2) return absl::StrJoin(names, "");
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

std::string OneTypeText(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "integer";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return ValuesText(*field.enum_type());
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat(field.message_type()->name(), " {...}");
  }
  return "";
}

// Each value with its comment, a line each; none has one: empty.
std::string ValueComments(const EnumDescriptor& values) {
  std::string text;
  for (int i = 0; i < values.value_count(); ++i) {
    const EnumValueDescriptor& value = *values.value(i);
    const std::string comment = SourceComment(value);
    if (comment.empty() || IsUnspecified(value)) continue;
    absl::StrAppend(&text, text.empty() ? "" : "\n", value.name(), ": ",
                    absl::StrJoin(absl::StrSplit(comment, '\n'), " "));
  }
  return text;
}

std::string Indented(absl::string_view text, int spaces) {
  if (text.empty()) return "";
  const std::string indent(spaces, ' ');
  std::string indented;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&indented, line.empty() ? "" : indent, line, "\n");
  }
  return indented;
}

// A field in the list of a message's.
std::string FieldText(const FieldDescriptor& field) {
  return absl::StrCat("  ", field.name(), ": ", TypeText(field), "\n",
                      Indented(CommentOfFieldOrMessage(field), 6));
}

std::string MessageText(const Descriptor& message) {
  std::string text = Indented(CommentOf(message), 2);
  const google::protobuf::OneofDescriptor* choice = nullptr;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (!text.empty()) absl::StrAppend(&text, "\n");
    if (field.real_containing_oneof() != choice) {
      choice = field.real_containing_oneof();
      absl::StrAppend(&text, choice != nullptr ? "  One of these:\n\n" : "  Also:\n\n");
    }
    absl::StrAppend(&text, FieldText(field));
  }
  return text;
}

// "layers[2]" -> "layers"
absl::string_view WithoutPosition(absl::string_view name) { return name.substr(0, name.find('[')); }

absl::Status NoSuchField(absl::string_view path, absl::string_view name,
                         const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return absl::InvalidArgumentError(absl::StrCat(
      path.empty() ? "configuration" : path, ": expected ",
      names.empty() ? "no field" : absl::StrCat("a field (", absl::StrJoin(names, ", "), ")"),
      ", found \"", name, "\""));
}

}  // namespace

std::string TypeText(const FieldDescriptor& field) {
  return absl::StrCat(field.is_repeated() ? "list of " : "", OneTypeText(field));
}

std::string CommentOf(const FieldDescriptor& field) {
  std::vector<std::string> parts;
  if (std::string comment = SourceComment(field); !comment.empty()) {
    parts.push_back(std::move(comment));
  }
  if (const EnumDescriptor* const values = field.enum_type(); values != nullptr) {
    const std::string of_none = SourceComment(*values->value(0));
    if (IsUnspecified(*values->value(0)) && !of_none.empty()) {
      parts.push_back(absl::StrCat("default ", of_none));
    }
  }
  return absl::StrJoin(parts, "\n");
}

std::string CommentOf(const Descriptor& message) { return SourceComment(message); }

std::string CommentOfFieldOrMessage(const FieldDescriptor& field) {
  std::string comment = CommentOf(field);
  if (!comment.empty() || field.message_type() == nullptr) return comment;
  return CommentOf(*field.message_type());
}

absl::StatusOr<ConfigReference> ConfigReference::Open(absl::string_view descriptors) {
  google::protobuf::FileDescriptorSet files;
  if (!files.ParseFromArray(descriptors.data(), static_cast<int>(descriptors.size()))) {
    return absl::InternalError("the description of the configuration is not a FileDescriptorSet");
  }
  ConfigReference reference;
  for (const google::protobuf::FileDescriptorProto& file : files.file()) {
    if (reference.pool_->BuildFile(file) == nullptr) {
      return absl::InternalError(
          absl::StrCat("the description of the configuration: bad file ", file.name()));
    }
  }
  reference.config_ = reference.Find("keelson.v1.TrainConfig");
  if (reference.config_ == nullptr) {
    return absl::InternalError("the description of the configuration has no TrainConfig");
  }
  return reference;
}

absl::StatusOr<std::string> ConfigReference::Explain(absl::string_view path) const {
  if (path.empty()) return absl::StrCat("A configuration\n", MessageText(*config_));
  const Descriptor* message = config_;
  const FieldDescriptor* field = nullptr;
  std::vector<absl::string_view> seen;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const absl::string_view name = WithoutPosition(part);
    if (message == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(absl::StrJoin(seen, "."),
                                                     ": expected no field of ", TypeText(*field),
                                                     ", found \"", name, "\""));
    }
    field = message->FindFieldByName(std::string(name));
    if (field == nullptr) return NoSuchField(absl::StrJoin(seen, "."), name, *message);
    seen.push_back(name);
    message = field->message_type();
  }
  std::string text = absl::StrCat(absl::StrJoin(seen, "."), ": ", TypeText(*field), "\n",
                                  Indented(CommentOf(*field), 2));
  if (field->enum_type() != nullptr) {
    absl::StrAppend(&text, Indented(ValueComments(*field->enum_type()), 2));
  }
  if (message != nullptr) absl::StrAppend(&text, MessageText(*message));
  return text;
}

std::string ConfigReference::LayerText(const std::string& kind) const {
  const Descriptor* const layer = Find("keelson.v1.LayerConfig");
  const FieldDescriptor* const field = layer == nullptr ? nullptr : layer->FindFieldByName(kind);
  return field == nullptr ? "" : CommentOfFieldOrMessage(*field);
}

}  // namespace keelson
