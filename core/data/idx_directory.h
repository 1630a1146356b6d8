// Finds the pairs of image and label files in a directory.
#ifndef KEELSON_CORE_DATA_IDX_DIRECTORY_H_
#define KEELSON_CORE_DATA_IDX_DIRECTORY_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace keelson {

// Paths of files that belong together.
struct IdxPair {
  std::string images;
  std::string labels;
};

struct IdxDirectory {
  IdxPair train;
  // Absent when the directory has a single pair, which then is `train` whatever its name.
  std::optional<IdxPair> eval;
};

// Pairs are NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte, plain, ".gz" or ".zst", of which
// the first one is taken that is there. Two pairs are told apart by "train" and by "t10k" or "test"
// in NAME.
//   NOT_FOUND: no such directory, or no pair in it.
//   INVALID_ARGUMENT: images without labels or labels without images; more pairs, or two that are
//     not one for training and one for evaluation.
absl::StatusOr<IdxDirectory> FindIdxFiles(const std::string& directory);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_IDX_DIRECTORY_H_
