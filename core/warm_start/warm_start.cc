#include "core/warm_start/warm_start.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"
#include "core/tensor_files/name_list.h"

namespace keelson {
namespace {

absl::Status BadFrom(size_t group, absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(FromPath(group), ": expected ", expected, ", found ", found));
}

// "dense_1/kernel", or, where the file calls it otherwise, "dense_1/kernel as 'encoder.weight'".
std::string NameIn(const VariableSpec& variable, const StoredOrigin& origin) {
  if (origin.tensor == variable.name) return variable.name;
  return absl::StrCat(variable.name, " as '", origin.tensor, "'");
}

// Why a variable cannot take the tensor; empty: it can.
std::string Misfit(const VariableSpec& variable, const TensorInfo& tensor) {
  if (!IsNumeric(tensor.dtype)) {
    return absl::StrCat("numbers, found ", TypeAndShape(tensor));
  }
  if (tensor.shape != variable.shape) {
    return absl::StrCat("shape ", variable.shape.ToString(), ", found ", tensor.shape.ToString());
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<WarmStart>> WarmStart::Open(const v1::InitialValuesConfig& config,
                                                           std::vector<VariableSpec> variables,
                                                           uint64_t seed) {
  const std::vector<StoredStart> starts = StoredStartsOf(config, variables);
  std::unique_ptr<WarmStart> warm(new WarmStart(std::move(variables), seed));
  for (const StoredStart& start : starts) {
    for (const StoredOrigin& origin : start.origins) RETURN_IF_ERROR(warm->OpenFile(origin));
  }
  warm->Find(starts);
  RETURN_IF_ERROR(warm->CheckMissing(starts));
  RETURN_IF_ERROR(warm->CheckGroups(starts));
  RETURN_IF_ERROR(warm->CheckTensors());
  return warm;
}

absl::Status WarmStart::OpenFile(const StoredOrigin& origin) {
  if (files_.count(origin.path) > 0) return absl::OkStatus();
  constexpr absl::string_view kExpected = "a snapshot or FILE.safetensors";
  const auto failed = [&](const absl::Status& status) {
    const bool absent = absl::IsNotFound(status) || absl::IsInvalidArgument(status);
    if (absent) return BadFrom(origin.group, kExpected, status.message());
    return absl::Status(status.code(),
                        absl::StrCat(FromPath(origin.group), ": ", status.message()));
  };
  File file;
  const absl::StatusOr<std::string> opened = ResolveTensorSource(origin.path);
  if (!opened.ok()) return failed(opened.status());
  absl::StatusOr<std::unique_ptr<TensorSource>> source = OpenTensorSource(*opened);
  if (!source.ok()) return failed(source.status());
  file.opened = *opened;
  file.source = *std::move(source);
  if (!file.source->reads_parts()) {
    return BadFrom(origin.group, kExpected,
                   absl::StrCat(origin.path, ", which cannot be read in parts"));
  }
  ASSIGN_OR_RETURN(const std::vector<TensorInfo> variables, file.source->Variables());
  for (const TensorInfo& variable : variables) file.variables.push_back(variable.name);
  for (TensorInfo& tensor : file.source->List()) {
    std::string name = tensor.name;
    file.tensors.emplace(std::move(name), std::move(tensor));
  }
  files_.emplace(origin.path, std::move(file));
  return absl::OkStatus();
}

void WarmStart::Find(const std::vector<StoredStart>& starts) {
  for (const StoredStart& start : starts) {
    const auto found =
        std::find_if(start.origins.begin(), start.origins.end(), [&](const StoredOrigin& origin) {
          return files_.at(origin.path).tensors.count(origin.tensor) > 0;
        });
    if (found != start.origins.end()) {
      origins_[start.variable] = *found;
    } else {
      missing_.push_back(start.variable);
    }
  }
}

absl::Status WarmStart::CheckMissing(const std::vector<StoredStart>& starts) const {
  std::vector<std::string> names;
  const StoredOrigin* last = nullptr;  // where the first of them was looked for
  for (const StoredStart& start : starts) {
    if (!start.required || origin(start.variable) != nullptr) continue;
    const StoredOrigin& looked_in = start.origins.back();
    if (last == nullptr) last = &looked_in;
    if (looked_in.group == last->group) {
      names.push_back(NameIn(variables_[start.variable], looked_in));
    }
  }
  if (last == nullptr) return absl::OkStatus();
  return BadFrom(last->group, absl::StrCat("all variables in ", OpenedPath(last->path)),
                 absl::StrCat("none of ", SomeOf(names),
                              "; missing: INITIALIZE starts them otherwise; the file has ",
                              SomeOf(files_.at(last->path).variables)));
}

absl::Status WarmStart::CheckGroups(const std::vector<StoredStart>& starts) const {
  std::set<size_t> taken;
  for (const std::optional<StoredOrigin>& origin : origins_) {
    if (origin.has_value()) taken.insert(origin->group);
  }
  for (const StoredStart& start : starts) {
    for (const StoredOrigin& looked_in : start.origins) {
      const StoredOrigin* const found = origin(start.variable);
      if (taken.count(looked_in.group) > 0) continue;
      // A file before this one has the variable.
      if (found != nullptr && found->group < looked_in.group) break;
      return BadFrom(looked_in.group, "at least one variable of the group in the file",
                     absl::StrCat("none in ", OpenedPath(looked_in.path), ", such as ",
                                  NameIn(variables_[start.variable], looked_in), "; the file has ",
                                  SomeOf(files_.at(looked_in.path).variables)));
    }
  }
  return absl::OkStatus();
}

absl::Status WarmStart::CheckTensors() const {
  constexpr size_t kShown = 8;
  std::vector<std::string> problems;
  size_t group = 0;
  for (size_t v = 0; v < variables_.size(); ++v) {
    const StoredOrigin* const from = origin(v);
    if (from == nullptr) continue;
    const std::string misfit =
        Misfit(variables_[v], files_.at(from->path).tensors.at(from->tensor));
    if (misfit.empty()) continue;
    if (problems.empty()) group = from->group;
    problems.push_back(absl::StrCat(NameIn(variables_[v], *from), ": expected ", misfit, " in ",
                                    OpenedPath(from->path)));
  }
  if (problems.empty()) return absl::OkStatus();
  const size_t count = problems.size();
  problems.resize(std::min(count, kShown));
  return absl::InvalidArgumentError(
      absl::StrCat(FromPath(group), ": ", absl::StrJoin(problems, "; "),
                   count > kShown ? absl::StrCat("; and ", count - kShown, " more") : ""));
}

absl::Status WarmStart::Read(size_t variable, int64_t first, absl::Span<float> out) const {
  const VariableSpec& spec = variables_[variable];
  const StoredOrigin* const from = origin(variable);
  if (from == nullptr) {
    FillInitialValues(spec, seed_, first, out);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(files_.at(from->path).source->ReadFloats(from->tensor, first, out));
  const auto bad =
      std::find_if(out.begin(), out.end(), [](float value) { return !std::isfinite(value); });
  if (bad == out.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      FromPath(from->group), ": ", NameIn(spec, *from), ": expected finite numbers, found ", *bad,
      " as element ", first + (bad - out.begin()), " in ", OpenedPath(from->path)));
}

absl::Status WarmStart::Verify(const StopSignal& stop) const {
  constexpr int64_t kPieceElements = 1 << 18;
  std::vector<float> piece;
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (origin(v) == nullptr) continue;
    const int64_t count = variables_[v].shape.num_elements();
    for (int64_t first = 0; first < count; first += kPieceElements) {
      if (stop.raised()) return absl::CancelledError("while reading initial values");
      piece.resize(std::min(kPieceElements, count - first));
      RETURN_IF_ERROR(Read(v, first, absl::MakeSpan(piece)));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> WarmStart::LeftIn(const std::string& path) const {
  std::set<std::string> taken;
  for (const std::optional<StoredOrigin>& origin : origins_) {
    if (origin.has_value() && origin->path == path) taken.insert(origin->tensor);
  }
  std::vector<std::string> left;
  for (const std::string& name : files_.at(path).variables) {
    if (taken.count(name) == 0) left.push_back(name);
  }
  return left;
}

std::string WarmStart::Report() const {
  std::vector<std::string> otherwise;
  std::map<std::string, int> taken;  // by path
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (origin(v) == nullptr) {
      otherwise.push_back(variables_[v].name);
    } else {
      ++taken[origin(v)->path];
    }
  }
  std::vector<std::string> missing;
  for (const size_t v : missing_) missing.push_back(variables_[v].name);
  std::string text = absl::StrCat("initial values: ", variables_.size() - otherwise.size(), " of ",
                                  variables_.size(), " variables from files");
  if (!otherwise.empty()) absl::StrAppend(&text, "; otherwise ", SomeOf(otherwise));
  if (!missing.empty()) absl::StrAppend(&text, "; not found ", SomeOf(missing));
  for (const auto& [path, file] : files_) {
    const std::vector<std::string> left = LeftIn(path);
    absl::StrAppend(&text, "; ", file.opened, ": ", taken[path], " taken, ",
                    left.empty() ? "nothing" : SomeOf(left), " not");
  }
  return text;
}

}  // namespace keelson
