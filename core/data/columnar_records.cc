#include "core/data/columnar_records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/data/columnar_file.h"
#include "core/data/columnar_layout.h"
#include "core/data/columns/label_column.h"

namespace keelson {
namespace {

absl::Status WrongColumn(const std::string& path, const std::string& expected,
                         const std::string& found) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected ", expected, ", found ", found));
}

// Matches what a model takes with a file's columns.
class ColumnMatch {
 public:
  explicit ColumnMatch(const ColumnarFile& file) : path_(file.path()), layout_(file.layout()) {}

  // The first array of the feature.
  absl::StatusOr<size_t> Find(const FeatureSpec& spec) const {
    const auto found = std::find_if(
        layout_.features.begin(), layout_.features.end(),
        [&](const ColumnarFeature& feature) { return feature.spec.name == spec.name; });
    if (found == layout_.features.end()) {
      return WrongColumn(path_, absl::StrCat("a feature \"", spec.name, "\""), FeaturesText());
    }
    const FeatureSpec& stored = found->spec;
    if (stored.kind != spec.kind || stored.shape != spec.shape ||
        stored.weighted != spec.weighted) {
      return WrongColumn(path_,
                         absl::StrCat("the feature \"", spec.name, "\" as ", spec.FormText()),
                         stored.FormText());
    }
    if (spec.num_ids > 0 && found->max_id >= static_cast<uint64_t>(spec.num_ids)) {
      return WrongColumn(path_,
                         absl::StrCat("ids of \"", spec.name, "\" below ", spec.num_ids,
                                      ", the rows of its embedding"),
                         absl::StrCat("up to ", found->max_id));
    }
    return layout_.ArrayOfFeature(found - layout_.features.begin());
  }

  absl::StatusOr<size_t> Find(const LabelSpec& spec) const {
    const auto found =
        std::find_if(layout_.labels.begin(), layout_.labels.end(),
                     [&](const ColumnarLabel& label) { return label.name == spec.name; });
    if (found == layout_.labels.end()) {
      return WrongColumn(path_, absl::StrCat("a label \"", spec.name, "\""), LabelsText());
    }
    for (const float extreme : {found->min, found->max}) {
      const std::optional<std::string> expected = NotALabel(spec, extreme);
      if (!expected.has_value()) continue;
      return WrongColumn(path_, absl::StrCat(*expected, " as each label \"", spec.name, "\""),
                         absl::StrCat(extreme));
    }
    if (spec.num_classes > 0 && !found->whole) {
      return WrongColumn(path_, absl::StrCat("classes as labels \"", spec.name, "\""), "fractions");
    }
    return layout_.ArrayOfLabel(found - layout_.labels.begin());
  }

 private:
  std::string FeaturesText() const {
    RecordSchema schema;
    for (const ColumnarFeature& feature : layout_.features) schema.features.push_back(feature.spec);
    return absl::Utf8SafeCHexEscape(schema.FeaturesText());
  }
  std::string LabelsText() const {
    if (layout_.labels.empty()) return "none";
    return absl::StrJoin(layout_.labels, ", ", [](std::string* out, const ColumnarLabel& label) {
      out->append(absl::Utf8SafeCHexEscape(label.name));
    });
  }

  const std::string& path_;
  const ColumnarLayout& layout_;
};

class ColumnarRecords : public ReadableRecords {
 public:
  explicit ColumnarRecords(const RecordSchema& schema) : schema_(schema) {}

  absl::Status Add(std::unique_ptr<ColumnarFile> file) {
    File added;
    const ColumnMatch match(*file);
    for (const FeatureSpec& feature : schema_.features) {
      ASSIGN_OR_RETURN(const size_t array, match.Find(feature));
      added.features.push_back(array);
    }
    for (const LabelSpec& label : schema_.labels) {
      ASSIGN_OR_RETURN(const size_t array, match.Find(label));
      added.labels.push_back(array);
    }
    if (file->layout().num_records == 0) {
      return WrongColumn(file->path(), "one record or more", "none");
    }
    begins_.push_back(begins_.back() + file->layout().num_records);
    added.content = std::move(file);
    files_.push_back(std::move(added));
    return absl::OkStatus();
  }

  int64_t size() const override { return begins_.back(); }
  std::string where() const override {
    return FilesText(files_.front().content->path(), files_.size());
  }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    std::vector<Run> runs;
    std::vector<bool> used(files_.size());
    for (const int64_t record : records) {
      if (record < 0 || record >= size()) return NoRecord(record, size());
      const Run next = RunAt(record);
      used[next.file] = true;
      if (!runs.empty() && runs.back().IsContinuedBy(next)) {
        ++runs.back().count;
      } else {
        runs.push_back(next);
      }
    }
    // Before as well, as what is gone cannot be read from mapped memory.
    RETURN_IF_ERROR(CheckUnchanged(used));
    const absl::Status status = Gather(runs, static_cast<int64_t>(records.size()), batch);
    RETURN_IF_ERROR(CheckUnchanged(used));
    return status;
  }

 private:
  struct File {
    std::unique_ptr<ColumnarFile> content;
    // Of each of the schema's the first array.
    std::vector<size_t> features;
    std::vector<size_t> labels;
  };
  // Records that lie one behind the other in a group.
  struct Run {
    uint32_t file = 0;
    uint32_t row = 0;  // the first one, in its group
    int64_t group = 0;
    size_t count = 1;

    bool IsContinuedBy(const Run& next) const {
      return next.file == file && next.group == group && next.row == row + count;
    }
  };

  Run RunAt(int64_t record) const {
    const size_t file =
        files_.size() == 1
            ? 0
            : std::upper_bound(begins_.begin(), begins_.end(), record) - begins_.begin() - 1;
    const int64_t inside = record - begins_[file];
    return {static_cast<uint32_t>(file), static_cast<uint32_t>(inside % kColumnarGroup),
            inside / kColumnarGroup};
  }

  absl::Status CheckUnchanged(const std::vector<bool>& used) const {
    for (size_t i = 0; i < files_.size(); ++i) {
      if (used[i]) RETURN_IF_ERROR(files_[i].content->CheckUnchanged());
    }
    return absl::OkStatus();
  }

  absl::Status Gather(const std::vector<Run>& runs, int64_t records, Batch* batch) const {
    Resize(records, schema_, batch);
    for (size_t i = 0; i < schema_.features.size(); ++i) {
      const FeatureSpec& feature = schema_.features[i];
      const auto array_of = [i](const File& file) { return file.features[i]; };
      FeatureValues* const values = &batch->features[i];
      switch (feature.kind) {
        case FeatureKind::kNumbers:
          RETURN_IF_ERROR(GatherRows(runs, array_of, values->numbers.data(),
                                     static_cast<size_t>(feature.shape.num_elements())));
          break;
        case FeatureKind::kId:
          RETURN_IF_ERROR(GatherRows(runs, array_of, values->ids.data(), 1));
          break;
        case FeatureKind::kBag:
          RETURN_IF_ERROR(GatherBags(runs, array_of, feature.weighted, values));
      }
    }
    for (size_t i = 0; i < schema_.labels.size(); ++i) {
      const auto array_of = [i](const File& file) { return file.labels[i]; };
      RETURN_IF_ERROR(GatherRows(runs, array_of, batch->labels[i].data(), 1));
    }
    return absl::OkStatus();
  }

  // Where an array begins for a group.
  static absl::StatusOr<const char*> Begin(const File& file, int64_t group, size_t array) {
    const char* const checked = file.content->Checked(group, array);
    if (checked != nullptr) return checked;
    RETURN_IF_ERROR(file.content->Check(group, array));
    return file.content->Checked(group, array);
  }

  // Copies rows of `size` numbers each. Runs lie anywhere in the files: the processor fetches those
  // of some together.
  template <typename Number, typename ArrayOf>
  absl::Status GatherRows(const std::vector<Run>& runs, ArrayOf array_of, Number* to,
                          size_t size) const {
    constexpr size_t kTogether = 64;
    const Number* begins[kTogether];
    for (size_t first = 0; first < runs.size(); first += kTogether) {
      const size_t end = std::min(first + kTogether, runs.size());
      for (size_t i = first; i < end; ++i) {
        const Run& run = runs[i];
        const File& file = files_[run.file];
        const size_t array = array_of(file);
        const char* at = file.content->Checked(run.group, array);
        if (at == nullptr) {
          ASSIGN_OR_RETURN(at, Begin(file, run.group, array));
        }
        begins[i - first] = reinterpret_cast<const Number*>(at) + run.row * size;
        __builtin_prefetch(begins[i - first]);
      }
      for (size_t i = first; i < end; ++i) {
        const size_t numbers = runs[i].count * size;
        if (numbers == 1) {
          *to = *begins[i - first];
        } else {
          std::memcpy(to, begins[i - first], numbers * sizeof(Number));
        }
        to += numbers;
      }
    }
    return absl::OkStatus();
  }

  template <typename ArrayOf>
  absl::Status GatherBags(const std::vector<Run>& runs, ArrayOf array_of, bool weighted,
                          FeatureValues* values) const {
    int64_t* end = values->offsets.data();
    for (const Run& run : runs) {
      const File& file = files_[run.file];
      const size_t array = array_of(file);
      ASSIGN_OR_RETURN(const char* const begin, Begin(file, run.group, array));
      const uint64_t* const offsets = reinterpret_cast<const uint64_t*>(begin) + run.row;
      const auto* const ids =
          reinterpret_cast<const uint64_t*>(file.content->Checked(run.group, array + 1));
      const auto before = static_cast<int64_t>(values->ids.size() - offsets[0]);
      for (size_t i = 1; i <= run.count; ++i) *++end = before + static_cast<int64_t>(offsets[i]);
      values->ids.insert(values->ids.end(), ids + offsets[0], ids + offsets[run.count]);
      if (!weighted) continue;
      const auto* const weights =
          reinterpret_cast<const float*>(file.content->Checked(run.group, array + 2));
      values->weights.insert(values->weights.end(), weights + offsets[0],
                             weights + offsets[run.count]);
    }
    return absl::OkStatus();
  }

  const RecordSchema schema_;
  std::vector<File> files_;
  std::vector<int64_t> begins_ = {0};  // the first record of each file, and the end
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ReadableRecords>> OpenColumnarRecords(
    const std::vector<std::string>& paths, const RecordSchema& schema, FileSystem* file_system) {
  const auto records = std::make_shared<ColumnarRecords>(schema);
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::unique_ptr<ColumnarFile> file, ColumnarFile::Open(path, file_system));
    RETURN_IF_ERROR(records->Add(std::move(file)));
  }
  return records;
}

}  // namespace keelson
