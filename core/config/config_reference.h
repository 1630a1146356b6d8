// What the fields of a configuration are: their types, and what train_config.proto says of them.
#ifndef KEELSON_CORE_CONFIG_CONFIG_REFERENCE_H_
#define KEELSON_CORE_CONFIG_CONFIG_REFERENCE_H_

#include <google/protobuf/descriptor.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

// train_config.proto and what it imports, as a serialized FileDescriptorSet with its comments; it
// is part of the program.
absl::string_view ConfigDescriptors();

// Thread-compatible; its descriptors live as long as it.
class ConfigReference {
 public:
  // Makes a reference of a serialized FileDescriptorSet. INTERNAL: it is none, or has no
  // keelson.v1.TrainConfig.
  static absl::StatusOr<ConfigReference> Open(absl::string_view descriptors);

  // The field at `path`, "model.layers.dense": what it is, and its own fields. Positions in lists
  // are ignored, so that the paths of error messages are understood: "model.layers[2].dense".
  // Empty: the whole configuration. INVALID_ARGUMENT: a message along the path has no such field;
  // the text names those that it has.
  absl::StatusOr<std::string> Explain(absl::string_view path) const;

  // What a layer of the kind "dense" computes: its comment, with the formula. Empty: there is no
  // such kind, or no comment.
  std::string LayerText(const std::string& kind) const;

  const google::protobuf::Descriptor* config() const { return config_; }
  const google::protobuf::Descriptor* Find(const std::string& message) const {
    return pool_->FindMessageTypeByName(message);
  }

 private:
  ConfigReference() : pool_(std::make_unique<google::protobuf::DescriptorPool>()) {}

  std::unique_ptr<google::protobuf::DescriptorPool> pool_;
  const google::protobuf::Descriptor* config_ = nullptr;
};

// "integer", "list of text", "VALID or SAME", "Pool {...}".
std::string TypeText(const google::protobuf::FieldDescriptor& field);

// The lines of the comments before and behind it in the .proto, without an empty line at either
// end; of an enum's field also which value is the default. Empty: there is none.
std::string CommentOf(const google::protobuf::FieldDescriptor& field);
std::string CommentOf(const google::protobuf::Descriptor& message);
// For a field that is a message, returns the field's own comment, or the message's where it has
// none.
std::string CommentOfFieldOrMessage(const google::protobuf::FieldDescriptor& field);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_CONFIG_REFERENCE_H_
