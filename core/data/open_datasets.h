// Opens the data that a DataConfig names.
#ifndef KEELSON_CORE_DATA_OPEN_DATASETS_H_
#define KEELSON_CORE_DATA_OPEN_DATASETS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/data/dataset.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Of sources with files that the configuration names (HasNamedFiles): those (open_record_files.h).
// Of the others, without `data_dir`: generated records (open_generated.h), which depend on `seed`.
// Otherwise the IDX files in that directory, each pair `NAME-images-idx3-ubyte` and
// `NAME-labels-idx1-ubyte`, either plain, ".gz" or ".zst":
//   - a single pair, whatever its name: the first 80 % of its records train, the rest evaluate;
//   - two pairs: the one with "train" in NAME trains, the one with "t10k" or "test" evaluates.
// The subsets of `config` then select from these.
//
// `schema` is the model's. Of IDX files it is one feature, which holds an image ([28, 28, 1], [28,
// 28] and [784] all hold one of 28x28), and one label, whose classes are enough.
//
// Errors, each naming the file or the field, of IDX files:
//   NOT_FOUND: the directory does not exist, or holds no pair.
//   INVALID_ARGUMENT: images without labels or labels without images; pairs that are not one for
//     training and one for evaluation; not an IDX file of unsigned bytes with the right rank;
//     image and label counts differ; the image does not fit `example_shape`; a label is out of
//     range; a subset is outside the set, or nothing is left in one; the model takes several
//     features or labels. Of data.external in any case.
//   DATA_LOSS: a file that is truncated, has bytes after its end, a header that no file of this
//     length can hold, or a gzip or zstd stream that is damaged.
absl::StatusOr<Datasets> OpenDatasets(const v1::DataConfig& config, const RecordSchema& schema,
                                      uint64_t seed);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_OPEN_DATASETS_H_
