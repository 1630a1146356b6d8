#include "core/metrics/exposition_testing.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status Bad(absl::string_view what, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", found));
}

bool IsName(absl::string_view name, bool colons) {
  if (name.empty() || absl::ascii_isdigit(name[0])) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_' && !(colons && c == ':')) return false;
  }
  return true;
}

absl::StatusOr<double> ParseNumber(absl::string_view text) {
  if (text == "NaN") return NAN;
  if (text == "+Inf") return INFINITY;
  if (text == "-Inf") return -INFINITY;
  double value = 0;
  const bool spaces = absl::StrContains(text, ' ');  // which SimpleAtod would skip
  if (spaces || !absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return Bad("not a number", text);
  }
  return value;
}

struct Sample {
  std::string name;
  std::string labels;  // as written, without "le"
  std::optional<double> le;
  double value = 0;
};

// Takes `name="value"` from the front.
absl::StatusOr<std::pair<std::string, std::string>> TakeLabel(absl::string_view* text) {
  const size_t equals = text->find("=\"");
  if (equals == absl::string_view::npos) return Bad("no label", *text);
  const std::string name(text->substr(0, equals));
  if (!IsName(name, false) || absl::StartsWith(name, "__")) return Bad("bad label name", name);
  std::string value;
  for (size_t i = equals + 2; i < text->size(); ++i) {
    if ((*text)[i] == '"') {
      *text = text->substr(i + 1);
      return std::make_pair(name, value);
    }
    value += (*text)[i];
    if ((*text)[i] != '\\') continue;
    if (++i == text->size() || !absl::StrContains("\\\"n", (*text)[i])) {
      return Bad("bad escape in the label", name);
    }
    value += (*text)[i];
  }
  return Bad("the label does not end", name);
}

absl::Status TakeLabels(absl::string_view* text, Sample* sample) {
  std::map<std::string, std::string> seen;
  while (!absl::ConsumePrefix(text, "}")) {
    if (!seen.empty() && !absl::ConsumePrefix(text, ",")) return Bad("no comma before", *text);
    ASSIGN_OR_RETURN(const auto label, TakeLabel(text));
    if (!seen.insert(label).second) return Bad("label twice", label.first);
    if (label.first == "le") {
      ASSIGN_OR_RETURN(sample->le, ParseNumber(label.second));
      continue;
    }
    absl::StrAppend(&sample->labels, sample->labels.empty() ? "" : ",", label.first, "=\"",
                    label.second, "\"");
  }
  return absl::OkStatus();
}

absl::StatusOr<Sample> ParseSample(absl::string_view line) {
  Sample sample;
  const size_t name_end = line.find_first_of("{ ");
  if (name_end == absl::string_view::npos) return Bad("no value", line);
  sample.name = std::string(line.substr(0, name_end));
  if (!IsName(sample.name, true)) return Bad("bad name", sample.name);
  absl::string_view rest = line.substr(name_end);
  if (absl::ConsumePrefix(&rest, "{")) RETURN_IF_ERROR(TakeLabels(&rest, &sample));
  if (!absl::ConsumePrefix(&rest, " ")) return Bad("no space before the value", line);
  ASSIGN_OR_RETURN(sample.value, ParseNumber(rest));
  return sample;
}

class Parser {
 public:
  absl::Status TakeLine(absl::string_view line) {
    if (absl::ConsumePrefix(&line, "# HELP ")) return BeginFamily(line);
    if (absl::ConsumePrefix(&line, "# TYPE ")) return TakeType(line);
    ASSIGN_OR_RETURN(const Sample sample, ParseSample(line));
    return TakeSample(sample);
  }

  // Checks the last family, and yields all.
  absl::StatusOr<Exposition> Finish() {
    RETURN_IF_ERROR(EndFamily());
    return std::move(page_);
  }

 private:
  struct Histogram {
    double last_bound = -INFINITY;
    double last_count = 0;
    bool ended = false;
    bool has_sum = false;
    bool has_count = false;
  };

  absl::Status BeginFamily(absl::string_view line) {
    RETURN_IF_ERROR(EndFamily());
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (!IsName(words.first, true)) return Bad("bad name", words.first);
    if (words.second.empty()) return Bad("no help", words.first);
    if (!page_.types.emplace(words.first, "").second) return Bad("family twice", words.first);
    family_ = words.first;
    type_.clear();
    has_samples_ = false;
    return absl::OkStatus();
  }

  absl::Status TakeType(absl::string_view line) {
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (words.first != family_ || !type_.empty()) return Bad("TYPE not after its HELP", line);
    if (words.second != "counter" && words.second != "gauge" && words.second != "histogram") {
      return Bad("unknown type", line);
    }
    type_ = page_.types[family_] = words.second;
    if (type_ == "counter" && !absl::EndsWith(family_, "_total")) {
      return Bad("a counter not called _total", family_);
    }
    return absl::OkStatus();
  }

  absl::Status TakeSample(const Sample& sample) {
    if (type_.empty()) return Bad("no TYPE before", sample.name);
    has_samples_ = true;
    const bool histogram = type_ == "histogram";
    if (histogram) RETURN_IF_ERROR(TakeHistogramSample(sample));
    if (!histogram && sample.name != family_) return Bad("not of the family", sample.name);
    if (!histogram && sample.le.has_value()) return Bad("le outside of a histogram", sample.name);
    if (type_ == "counter" && !(sample.value >= 0)) return Bad("negative counter", sample.name);
    std::string labels = sample.labels;
    if (sample.le.has_value()) {
      absl::StrAppend(&labels, labels.empty() ? "" : ",", "le=\"",
                      std::isinf(*sample.le) ? "+Inf" : absl::StrCat(*sample.le), "\"");
    }
    const std::string key =
        labels.empty() ? sample.name : absl::StrCat(sample.name, "{", labels, "}");
    if (!page_.samples.emplace(key, sample.value).second) return Bad("sample twice", key);
    return absl::OkStatus();
  }

  absl::Status TakeHistogramSample(const Sample& sample) {
    Histogram& histogram = histograms_[sample.labels];
    if (sample.name == family_ + "_sum") {
      histogram.has_sum = true;
      return absl::OkStatus();
    }
    if (sample.name == family_ + "_count") {
      histogram.has_count = true;
      if (histogram.last_count == sample.value) return absl::OkStatus();
      return Bad("the count is not that of the bucket +Inf", sample.name);
    }
    if (sample.name != family_ + "_bucket" || !sample.le.has_value()) {
      return Bad("not of the histogram", sample.name);
    }
    if (!(*sample.le > histogram.last_bound)) return Bad("buckets not ascending", sample.name);
    if (!(sample.value >= histogram.last_count)) return Bad("not cumulative", sample.name);
    histogram.last_bound = *sample.le;
    histogram.last_count = sample.value;
    histogram.ended = std::isinf(*sample.le);
    return absl::OkStatus();
  }

  absl::Status EndFamily() {
    if (family_.empty()) return absl::OkStatus();
    if (type_.empty()) return Bad("no TYPE", family_);
    if (!has_samples_) return Bad("no samples", family_);
    for (const auto& [labels, histogram] : histograms_) {
      if (!histogram.ended) return Bad("no bucket +Inf", family_);
      if (!histogram.has_sum || !histogram.has_count) return Bad("no _sum or no _count", family_);
    }
    histograms_.clear();
    return absl::OkStatus();
  }

  Exposition page_;
  std::string family_, type_;
  bool has_samples_ = false;
  std::map<std::string, Histogram> histograms_;  // of the family, by labels
};

}  // namespace

absl::StatusOr<Exposition> ParseExposition(absl::string_view text) {
  Parser parser;
  int number = 0;
  if (!absl::ConsumeSuffix(&text, "\n")) return Bad("the last line does not end", "");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::Status status = parser.TakeLine(line);
    if (!status.ok()) return Bad(absl::StrCat("line ", number), status.message());
  }
  return parser.Finish();
}

}  // namespace keelson
