// What lines of libsvm and of libffm have in common: a label, then blanks and pairs.
#ifndef KEELSON_CORE_DATA_SVM_LINE_H_
#define KEELSON_CORE_DATA_SVM_LINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/data/record_format.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

inline constexpr absl::string_view kSvmBlanks = " \t";

inline const char* SkipSvmBlanks(const char* at, const char* end) {
  while (at < end && (*at == ' ' || *at == '\t')) ++at;
  return at;
}

// Whether a pair may end here.
inline bool AtSvmBreak(const char* at, const char* end) {
  return at == end || *at == ' ' || *at == '\t';
}

// Sets the error: at a place in the line something else was expected. Returns false.
bool FailSvm(absl::string_view line, const char* at, std::string expected, RecordError* error);

// Reads ":VALUE" behind an index, which ends at `at`. Returns where it ends. Null: it is none, and
// `error` is set; a pair has the form `form` and begins at `begin`.
const char* ReadSvmValue(absl::string_view line, const char* begin, const char* at,
                         const char* form, float* value, RecordError* error);

// The label in front of a line. Immutable.
class SvmLabel {
 public:
  // `schema` has been checked. `values`: those of class 0, 1, …; none: the classes themselves, and
  // with two classes also -1 for class 0.
  SvmLabel(const RecordSchema& schema, absl::Span<const float> values);

  // Sets the label of a row, if the model has one. Returns where the pairs begin; null: it is no
  // label, and `error` is set.
  const char* Read(absl::string_view line, int64_t row, Batch* batch, RecordError* error) const;
  // Of all on which it depends which labels are ones.
  std::string Fingerprint() const;

 private:
  std::optional<float> LabelOf(float label) const;
  std::string Expected() const;

  const std::vector<float> values_;
  const int64_t num_classes_;
};

// INVALID_ARGUMENT, naming `field`, "data.libsvm": the model takes another label than kLabel, or it
// has not so many classes as there are label values.
absl::Status CheckSvmLabel(absl::string_view field, const RecordSchema& schema, int label_values);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_SVM_LINE_H_
