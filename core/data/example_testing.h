// Writes tf.Example messages, for tests.
#ifndef KEELSON_CORE_DATA_EXAMPLE_TESTING_H_
#define KEELSON_CORE_DATA_EXAMPLE_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// Features in the order in which they are added, lists packed.
class ExampleBuilder {
 public:
  ExampleBuilder& Texts(absl::string_view name, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) Bytes(1, value, &list);
    return Add(name, 1, list);
  }
  ExampleBuilder& Numbers(absl::string_view name, const std::vector<float>& values) {
    std::string packed(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return Add(name, 2, Packed(packed));
  }
  ExampleBuilder& Integers(absl::string_view name, const std::vector<int64_t>& values) {
    std::string packed;
    for (const int64_t value : values) Varint(static_cast<uint64_t>(value), &packed);
    return Add(name, 3, Packed(packed));
  }
  // A feature of these bytes.
  ExampleBuilder& Feature(absl::string_view name, absl::string_view feature) {
    std::string entry;
    Bytes(1, name, &entry);
    Bytes(2, feature, &entry);
    Bytes(1, entry, &features_);
    return *this;
  }

  std::string Build() const {
    std::string example;
    Bytes(1, features_, &example);
    return example;
  }

  static void Varint(uint64_t value, std::string* out) {
    for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
    out->push_back(static_cast<char>(value));
  }
  static void Bytes(uint32_t field, absl::string_view bytes, std::string* out) {
    Varint(field << 3 | 2, out);
    Varint(bytes.size(), out);
    out->append(bytes.data(), bytes.size());
  }

 private:
  static std::string Packed(const std::string& values) {
    std::string list;
    if (!values.empty()) Bytes(1, values, &list);
    return list;
  }
  ExampleBuilder& Add(absl::string_view name, uint32_t kind, const std::string& list) {
    std::string feature;
    Bytes(kind, list, &feature);
    return Feature(name, feature);
  }

  std::string features_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_EXAMPLE_TESTING_H_
