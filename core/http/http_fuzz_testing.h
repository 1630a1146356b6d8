// Generates malformed requests for tests of handlers.
#ifndef KEELSON_CORE_HTTP_HTTP_FUZZ_TESTING_H_
#define KEELSON_CORE_HTTP_HTTP_FUZZ_TESTING_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/http/message.h"

namespace keelson {

// A valid request from which malformed ones are made.
struct HttpSample {
  std::string method = "GET";
  std::string path;
  // Names and good values.
  std::vector<std::pair<std::string, std::string>> query;
  std::string body;
};

// Makes the same requests for the same seed: a sample with one to three defects. Parts of the path
// become forms of "..", absolute paths, empty or huge; parameters get values of the wrong kind or
// size, are dropped, repeated or invented; bodies become broken, deep or huge JSON; methods and
// headers change. For one thread.
class NastyRequests {
 public:
  // `samples`: at least one.
  NastyRequests(uint64_t seed, std::vector<HttpSample> samples);

  HttpRequest Next();

 private:
  size_t Choose(size_t count);
  std::string NastyText();
  std::string NastyBody(const std::string& good);
  std::string RandomBytes();
  void SpoilPath(HttpRequest* request);
  void SpoilQuery(HttpRequest* request);
  void SpoilRest(HttpRequest* request);

  const std::vector<HttpSample> samples_;
  std::mt19937_64 random_;
};

// Returns the request as a client sends it: path and query escaped, its headers, Content-Length if
// it has a body.
std::string RequestBytes(const HttpRequest& request);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_HTTP_FUZZ_TESTING_H_
