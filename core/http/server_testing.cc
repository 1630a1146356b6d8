#include "core/http/server_testing.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace keelson {

HttpResponse Echo(const HttpRequest& request) {
  HttpResponse response;
  response.content_type = "text/x-echo";
  response.body =
      absl::StrCat("path=", request.path, " body=", request.body, " client=", request.client, "\n");
  return response;
}

HttpServer::Options PortFlag() {
  HttpServer::Options options;
  options.flag = "--port_flag";
  return options;
}

std::unique_ptr<HttpServer> StartOrDie(const HttpServer::Options& options,
                                       HttpServer::Handler handler) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(options, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

HttpAnswer Ask(const HttpServer& server, absl::string_view method, absl::string_view target,
               absl::string_view headers, absl::string_view body) {
  const absl::StatusOr<HttpAnswer> answer = AskHttp(server.port(), method, target, headers, body);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(HttpAnswer());
}

HttpConnection ConnectOrDie(const HttpServer& server) {
  absl::StatusOr<HttpConnection> connection = HttpConnection::To(server.port());
  EXPECT_TRUE(connection.ok()) << connection.status();
  return *std::move(connection);
}

HttpConnection ConnectSlowlyOrDie(const HttpServer& server) {
  absl::StatusOr<HttpConnection> connection = HttpConnection::SlowlyTo(server.port());
  EXPECT_TRUE(connection.ok()) << connection.status();
  return *std::move(connection);
}

std::string Exchanged(const HttpServer& server, absl::string_view bytes) {
  const HttpConnection connection = ConnectOrDie(server);
  connection.Send(bytes);
  return connection.ReceiveAll();
}

int CountEntries(const char* path) {
  DIR* const directory = opendir(path);
  int entries = 0;
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries;
}

}  // namespace keelson
