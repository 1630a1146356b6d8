#include "core/data/idx_directory.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"

namespace keelson {
namespace {

constexpr absl::string_view kImages = "-images-idx3-ubyte";
constexpr absl::string_view kLabels = "-labels-idx1-ubyte";

// By NAME; a path is empty while its file was not seen.
using Pairs = std::map<std::string, IdxPair>;

absl::Status NoPair(const std::string& directory) {
  return absl::NotFoundError(absl::StrCat("data directory ", directory, ": expected files *",
                                          kImages, "[.gz|.zst] and *", kLabels,
                                          "[.gz|.zst], found none"));
}

absl::Status MissingPartner(const std::string& path, const std::string& directory,
                            const std::string& name, absl::string_view suffix) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected ",
                                                 JoinPath(directory, absl::StrCat(name, suffix)),
                                                 "[.gz|.zst] beside it"));
}

absl::Status AmbiguousPairs(const std::string& directory, const Pairs& pairs) {
  std::string names;
  for (const auto& [name, pair] : pairs) absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  return absl::InvalidArgumentError(absl::StrCat(
      "data directory ", directory,
      ": expected one pair named *train* and one named *t10k* or *test*, found ", names));
}

void Add(absl::string_view file, absl::string_view suffix, const std::string& directory,
         std::string IdxPair::*member, Pairs* pairs) {
  absl::string_view name = WithoutPackedSuffix(file);
  if (!absl::ConsumeSuffix(&name, suffix)) return;
  std::string& path = (*pairs)[std::string(name)].*member;
  // Names come sorted, the plain file before its ".gz", and that before its ".zst".
  if (path.empty()) path = JoinPath(directory, file);
}

absl::Status CheckComplete(const std::string& directory, const Pairs& pairs) {
  for (const auto& [name, pair] : pairs) {
    if (pair.labels.empty()) return MissingPartner(pair.images, directory, name, kLabels);
    if (pair.images.empty()) return MissingPartner(pair.labels, directory, name, kImages);
  }
  return absl::OkStatus();
}

bool IsTrain(absl::string_view name) { return absl::StrContains(name, "train"); }
bool IsEval(absl::string_view name) {
  return !IsTrain(name) && (absl::StrContains(name, "t10k") || absl::StrContains(name, "test"));
}

absl::StatusOr<IdxDirectory> Assign(const std::string& directory, const Pairs& pairs) {
  if (pairs.empty()) return NoPair(directory);
  const auto& [first_name, first] = *pairs.begin();
  const auto& [last_name, last] = *pairs.rbegin();
  if (pairs.size() == 1) return IdxDirectory{first, std::nullopt};
  if (pairs.size() == 2 && IsTrain(first_name) && IsEval(last_name))
    return IdxDirectory{first, last};
  if (pairs.size() == 2 && IsEval(first_name) && IsTrain(last_name))
    return IdxDirectory{last, first};
  return AmbiguousPairs(directory, pairs);
}

}  // namespace

absl::StatusOr<IdxDirectory> FindIdxFiles(const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> listed = ListDirectory(directory);
  if (!listed.ok()) {
    return absl::Status(listed.status().code(),
                        absl::StrCat("data directory: ", listed.status().message()));
  }
  Pairs pairs;
  for (const std::string& file : *listed) {
    Add(file, kImages, directory, &IdxPair::images, &pairs);
    Add(file, kLabels, directory, &IdxPair::labels, &pairs);
  }
  RETURN_IF_ERROR(CheckComplete(directory, pairs));
  return Assign(directory, pairs);
}

}  // namespace keelson
