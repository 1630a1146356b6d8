// Lines as the files of known data sets have them, drawn at random.
#ifndef KEELSON_BENCH_DATA_SAMPLE_LINES_H_
#define KEELSON_BENCH_DATA_SAMPLE_LINES_H_

#include <cstddef>
#include <string>

namespace keelson::bench {

// libsvm lines with 14 of 123 indices, all of the value 1, as a9a has them: about 75 bytes.
std::string LinesLikeA9a(size_t bytes);
// libsvm lines with about 75 of 47,236 indices and values of six digits, as rcv1 has them: about
// 1 KB.
std::string LinesLikeRcv1(size_t bytes);
// Lines of Criteo's click logs, of which a seventh of the fields is empty: about 240 bytes.
std::string LinesLikeCriteo(size_t bytes);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_DATA_SAMPLE_LINES_H_
