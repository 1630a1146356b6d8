// What kind of source a configuration's records have.
#ifndef KEELSON_CORE_DATA_COLUMNS_DATA_SOURCE_H_
#define KEELSON_CORE_DATA_COLUMNS_DATA_SOURCE_H_

#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Whether they are files that train_files and eval_files name: not those of IDX files, which have
// names of their own, and not generated ones.
bool HasNamedFiles(const v1::DataConfig& data);

// Whether `features` and `labels` say what a model takes of the files' columns.
bool HasColumns(const v1::DataConfig& data);

// Whether a value of a column may be a list, which nothing needs to separate.
bool HasLists(const v1::DataConfig& data);

// The sources of these kinds, for messages.
inline constexpr char kSourcesWithFiles[] =
    "libsvm, libffm, criteo, csv, tf_record, npz, parquet or columnar";
inline constexpr char kSourcesWithColumns[] = "csv, tf_record, npz or parquet";

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_DATA_SOURCE_H_
