#include "core/data/example_format.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"
#include "core/data/columns/record_maker.h"
#include "core/data/example_reader.h"
#include "core/data/record_framing.h"

namespace keelson {
namespace {

class ExampleFormat : public RecordFormat {
 public:
  explicit ExampleFormat(std::unique_ptr<const RecordMaker> maker)
      : RecordFormat(maker->schema()), maker_(std::move(maker)) {
    for (const std::string& name : maker_->columns()) columns_.emplace(name, columns_.size());
  }

  const RecordFraming& framing() const override { return TfRecordFraming(); }

  uint64_t fingerprint() const override {
    constexpr int kRules = 1;  // counts up when the code calls other records examples
    return StableHash(absl::StrCat("tf.Example ", kRules, " ", maker_->fingerprint())) | 1;
  }

  bool Parse(absl::string_view record, int64_t row, Batch* batch,
             RecordError* error) const override {
    ExampleReader reader(&columns_);
    size_t bad_byte = 0;
    if (!reader.Read(record, &bad_byte)) {
      *error = {bad_byte + 1, "a tf.Example",
                absl::StrCat("other bytes, from byte ", bad_byte, " of it on")};
      return false;
    }
    ColumnError wrong;
    if (maker_->Fill(reader.values(), row, batch, &wrong)) return true;
    *error = {
        0, absl::StrCat(wrong.expected, " in the column \"", maker_->columns()[wrong.column], "\""),
        wrong.found};
    return false;
  }

  RecordColumns Columns(absl::string_view record) const override {
    ExampleReader reader(&columns_);
    size_t bad_byte = 0;
    if (!reader.Read(record, &bad_byte)) return {};
    return ColumnTexts(maker_->columns(), reader.values());
  }

 private:
  const std::unique_ptr<const RecordMaker> maker_;
  ExampleReader::Columns columns_;
};

// The names of the features of a file's first examples.
class FirstNames {
 public:
  static constexpr int64_t kExamples = 10'000;

  // Stops at what is damaged: who reads it as a record says so.
  absl::Status Read(const std::string& path, FileSystem* file_system) {
    constexpr size_t kMostBytes = 64 << 20;
    ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, OpenByteStream(path, file_system));
    std::string bytes;
    for (size_t taken = 0; taken < kMostBytes && examples_ < kExamples;) {
      std::string more(1 << 16, '\0');
      ASSIGN_OR_RETURN(const size_t n, stream->Read(more.size(), more.data()));
      bytes.append(more, 0, n);
      taken += n;
      TakeExamples(&bytes);
      if (n < more.size()) break;
    }
    return absl::OkStatus();
  }

  int64_t examples() const { return examples_; }
  // Of these the ones that are a tf.Example.
  int64_t sound() const { return sound_; }
  const std::set<std::string>& names() const { return names_; }

 private:
  // Takes the whole ones off the front.
  void TakeExamples(std::string* bytes) {
    size_t taken = 0;
    while (examples_ < kExamples) {
      const auto frame = TfRecordFraming().First(absl::string_view(*bytes).substr(taken));
      if (!frame.has_value()) break;
      const auto add = [this](absl::string_view name, absl::string_view) {
        names_.emplace(name);
        return true;
      };
      size_t bad_byte = 0;
      if (ForEachFeature(frame->record, add, &bad_byte)) ++sound_;
      ++examples_;
      taken += frame->size;
    }
    bytes->erase(0, taken);
  }

  int64_t examples_ = 0;
  int64_t sound_ = 0;
  std::set<std::string> names_;
};

std::string SomeNames(const std::set<std::string>& names) {
  constexpr size_t kMost = 10;
  const auto end = std::next(names.begin(), static_cast<ptrdiff_t>(std::min(kMost, names.size())));
  return names.empty()
             ? "none"
             : absl::StrCat(absl::Utf8SafeCHexEscape(absl::StrJoin(names.begin(), end, ", ")),
                            names.size() > kMost ? ", ..." : "");
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFormat>> NewExampleFormat(const v1::DataConfig& data,
                                                                     const RecordSchema& schema,
                                                                     const std::string& path,
                                                                     FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<const RecordMaker> maker,
                   RecordMaker::Create(data, schema, file_system));
  FirstNames first;
  RETURN_IF_ERROR(first.Read(path, file_system));
  for (size_t i = 0; first.sound() > 0 && i < maker->columns().size(); ++i) {
    const std::string& name = maker->columns()[i];
    if (first.names().count(name) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected a column \"", name, "\" (", maker->needed_by(i), ") in one of the first ",
        first.examples(), " examples, found ", SomeNames(first.names())));
  }
  return std::make_unique<ExampleFormat>(std::move(maker));
}

}  // namespace keelson
