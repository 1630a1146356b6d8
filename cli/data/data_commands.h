// The commands of keelson_data: what is in a file with columns, a configuration to begin with, and
// its division in two.
#ifndef KEELSON_CLI_DATA_DATA_COMMANDS_H_
#define KEELSON_CLI_DATA_DATA_COMMANDS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/data/row_file.h"
#include "core/base/file_system.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Prints for each column its kind, how many rows have none, how many values differ, the extremes,
// median and mean of numbers, and the most frequent values with their shares. `rows`: of the first
// so many alone; 0: of all. Columns of an npz or Parquet file that no model can take have their
// type alone. Of a columnar file: DescribeColumnar.
absl::Status PrintStatistics(const RowFileOptions& options, int64_t rows, FileSystem* file_system,
                             std::ostream* out);

struct ProposalOptions {
  RowFileOptions file;
  // The label's column. Empty: the one of a usual name ("label", "target", "clicked", …), or the
  // last one.
  std::string label = {};
  int64_t rows = 10'000;  // that are looked at, the first ones; 0: all
};

// A configuration of a model of all columns that say something, which trains as it is: a network of
// the standardised numbers and of a vector for each other value, and a weight for each of these
// (Wide & Deep). A column of which nearly every row has another value is left out, and so is one
// with a single value, or with lists of fractions that are not of one length. INVALID_ARGUMENT:
// there is no such label, or nothing is left.
absl::StatusOr<v1::TrainConfig> ProposeConfig(const ProposalOptions& options,
                                              FileSystem* file_system);
// Prints it as text.
absl::Status PrintProposal(const ProposalOptions& options, FileSystem* file_system,
                           std::ostream* out);

struct SplitOptions {
  RowFileOptions file;
  std::string first, second;  // the files to write
  double fraction = 0.8;      // of the rows, that go into the first
  // All rows of a value of this column go into one file. Empty: each row by itself.
  std::string by = {};
  uint64_t seed = 1;
  // The rows are divided by the values of this column: those that are less go into the first file.
  // Numbers, or texts that sort as they are, such as "2026-11-27T16:00". Not together with `by`.
  std::string time = {};
};

// Writes each row into one of two files, which have the header too, and prints how many each has.
// Depends on the rows and the seed alone. Of times all rows with the one that is at the fraction go
// into the second file. INVALID_ARGUMENT: a fraction outside (0, 1), a file that
// is there already, or that ends with ".gz" or ".zst"; no such column; `by` and `time`
// both; a row without a time, or none with a time that is less than the one at the fraction.
absl::Status SplitRows(const SplitOptions& options, FileSystem* file_system, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_DATA_DATA_COMMANDS_H_
