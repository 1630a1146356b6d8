#include "core/config/config_difference.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

constexpr char kNone[] = "none";

class Collector : public MessageDifferencer::Reporter {
 public:
  using Path = std::vector<MessageDifferencer::SpecificField>;

  // The messages are those that hold the field at the end of the path.
  void ReportAdded(const Message&, const Message& found, const Path& path) override {
    differences_.push_back({NameOf(path), kNone, ValueIn(found, path, path.back().new_index)});
  }
  void ReportDeleted(const Message& expected, const Message&, const Path& path) override {
    differences_.push_back({NameOf(path), ValueIn(expected, path, path.back().index), kNone});
  }
  void ReportModified(const Message& expected, const Message& found, const Path& path) override {
    // What differs inside it has been reported.
    if (path.back().field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return;
    differences_.push_back({NameOf(path), ValueIn(expected, path, path.back().index),
                            ValueIn(found, path, path.back().new_index)});
  }

  std::vector<SettingDifference> Take() { return std::move(differences_); }

 private:
  static std::string NameOf(const Path& path) {
    return absl::StrJoin(path, ".", [](std::string* out, const auto& part) {
      absl::StrAppend(out, part.field->name());
      const int index = part.index >= 0 ? part.index : part.new_index;
      if (part.field->is_repeated()) absl::StrAppend(out, "[", index, "]");
    });
  }

  static std::string ValueIn(const Message& holder, const Path& path, int index) {
    const FieldDescriptor* const field = path.back().field;
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    std::string text;
    printer.PrintFieldValueToString(holder, field, field->is_repeated() ? index : -1, &text);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return text;
    return text.empty() ? "{}" : absl::StrCat("{ ", text, "}");
  }

  std::vector<SettingDifference> differences_;
};

}  // namespace

std::string SettingDifference::ToString() const {
  return absl::StrCat(field, ": expected ", expected, ", found ", found);
}

std::vector<SettingDifference> ConfigDifference(const v1::TrainConfig& expected,
                                                const v1::TrainConfig& found) {
  const v1::TrainConfig first = WithoutDirectories(expected);
  const v1::TrainConfig second = WithoutDirectories(found);
  Collector collector;
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&collector);
  differencer.Compare(first, second);
  return collector.Take();
}

}  // namespace keelson
