#include "core/data/idx_testing.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

void AppendBigEndian32(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

}  // namespace

std::string IdxContent(const std::vector<uint32_t>& dims, absl::string_view values) {
  std::string content;
  AppendBigEndian32(0x0800 + static_cast<uint32_t>(dims.size()), &content);
  for (const uint32_t dim : dims) AppendBigEndian32(dim, &content);
  return absl::StrCat(content, values);
}

std::string GzipContent(absl::string_view content) {
  z_stream zlib = {};
  EXPECT_EQ(deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&zlib, content.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  zlib.avail_in = static_cast<uInt>(content.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

std::string ZstdContent(absl::string_view content) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  EXPECT_EQ(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)), 0u);
  std::string out(ZSTD_compressBound(content.size()), '\0');
  const size_t size =
      ZSTD_compress2(context, out.data(), out.size(), content.data(), content.size());
  ZSTD_freeCCtx(context);
  EXPECT_EQ(ZSTD_isError(size), 0u) << ZSTD_getErrorName(size);
  out.resize(size);
  return out;
}

void WriteTestFile(const std::string& path, absl::string_view content) {
  ASSERT_TRUE(WriteFileAtomically(path, content).ok()) << path;
}

void WriteIdxPair(const std::string& directory, absl::string_view name,
                  const std::vector<uint8_t>& labels, bool gzip, uint32_t side) {
  const uint32_t count = static_cast<uint32_t>(labels.size());
  std::string pixels;
  for (uint32_t i = 0; i < count; ++i) pixels.append(side * side, static_cast<char>(i));
  const std::string images = IdxContent({count, side, side}, pixels);
  const std::string classes = IdxContent({count}, std::string(labels.begin(), labels.end()));
  const std::string base = JoinPath(directory, name);
  const absl::string_view end = gzip ? ".gz" : "";
  WriteTestFile(absl::StrCat(base, "-images-idx3-ubyte", end), gzip ? GzipContent(images) : images);
  WriteTestFile(absl::StrCat(base, "-labels-idx1-ubyte", end),
                gzip ? GzipContent(classes) : classes);
}

}  // namespace keelson
