"""Feeds check_includes trees with one fault each."""

from checks_testing import TreeTest, load

check_includes = load("check_includes")

_SHAPE_H = """
#ifndef KEELSON_CORE_SHAPE_H_
#define KEELSON_CORE_SHAPE_H_
#define SHAPE_CHECK(x) x
namespace keelson {
class Shape final : public Base {
 public:
  struct Nested {};
  int Rank() const { return {}; }
};
enum class Order { kRows, kColumns };
struct alignas(2 * sizeof(int)) Aligned {
  int x = 0;
};
using Extents = Base;
template <typename T, typename = Foo<T>>
concept Sized = true;
inline constexpr int kMaxRank = 8;
constexpr int kRanks[] = {1, 2};
extern "C" {
}
template <typename T>
T Flattened(const T& shape = {}, int n = 0);
inline int Volume(int a) {
  struct Local {};
  return a;
}
bool operator==(Shape a, Shape b);
class Ahead;
}  // namespace keelson
#endif
"""


class CheckIncludesTest(TreeTest):
    def violations(self):
        return [str(v) for v in check_includes.IncludeChecker(self.root).check()]

    def assert_missing(self, path, text, line, found):
        self.assertEqual(self.check(path, text), [f"{path}:{line}: the header is not included: {found}"])

    def test_what_a_header_declares(self):
        exports = check_includes.exports_of(check_includes.Source("core/shape.h", _SHAPE_H).plain)
        types = {"Shape", "Order", "Aligned", "Extents", "Sized", "kMaxRank", "kRanks"}
        self.assertEqual(exports.types, types)
        self.assertEqual(exports.functions, {"Flattened", "Volume"})
        self.assertEqual(exports.namespaces, {"keelson"})

        self.assertEqual(set(exports.classes), {"keelson::Shape", "keelson::Aligned"})

    def test_a_class_that_two_headers_define(self):
        """Whatever is between the namespace and the class."""
        self.write("core/http/connection.h", "namespace keelson {\nclass Connection {\n};\n}\n")
        for code in (
            "class Connection final : Base {};",
            "struct Connection {};",
            "template <typename T>\nclass Connection {};",
            "} namespace keelson { class Connection {};",
        ):
            found = self.check("core/rpc/connection.h", "namespace keelson {\n" + code + "\n}\n")
            line = code.count("\n") + 2
            rule = "another header defines a class of this name"
            self.assertEqual(
                found, [f"core/rpc/connection.h:{line}: {rule}: keelson::Connection in core/http/connection.h"]
            )

    def test_classes_that_differ(self):
        self.write("core/http/connection.h", "namespace keelson {\nclass Connection {\n};\n}\n")
        for code in (
            "class Connection;",
            "namespace rpc { class Connection {}; }",
            "class Other { class Connection {}; };",
            "template <>\nstruct Connection<int> {};",
            "enum class Kind { Connection };",
            "struct Outer::Connection {};",
        ):
            self.assert_clean("core/rpc/connection.h", "namespace keelson {\n" + code + "\n}\n")
        self.assert_clean("core/rpc/connection.h", "class Connection {};\n")
        self.assert_clean("core/rpc/connection.cc", "namespace keelson {\nclass Connection {};\n}\n")

    def test_own_names(self):
        self.write("core/shape.h", _SHAPE_H)
        for use, name in (
            ("int x(const Shape& s);", "Shape"),
            ("auto x = Order::kRows;", "Order"),
            ("Aligned x;", "Aligned"),
            ("Of<Extents> x;", "Extents"),
            ("template <Sized T> void F();", "Sized"),
            ("int x[kMaxRank];", "kMaxRank"),
            ("int x = Volume(2);", "Volume"),
            ("int x = keelson::Volume(2);", "Volume"),
            ("Shape::Nested x;", "Shape"),
            ("int x = SHAPE_CHECK(1);", "SHAPE_CHECK"),
            ("#define X(a) Volume(a)", "Volume"),
        ):
            self.assert_missing("core/a.cc", f"\nnamespace keelson {{\n{use}\n}}\n", 3, f"{name} needs core/shape.h")
            self.assert_clean("core/a.cc", f'#include "core/shape.h"\nnamespace keelson {{\n{use}\n}}\n')

    def test_what_is_no_use(self):
        self.write("core/shape.h", _SHAPE_H)
        for code in (
            "// Shape",
            "/* Shape\n Shape */",
            'auto x = "Shape \\" Shape";',
            'auto x = R"(Shape " Shape)";',
            "int n = x.Volume(2) + y->Volume(2);",
            "int n = other::Volume(2);",
            "int n = Other::Order::kRows;",
            "auto f = .Shape = 1;",
            "int Nested = 1;",
            "auto n = 1'000'000; auto c = 'a'; int Volume;",
            "class Shape; void F(Shape* s);",
            "enum class Axis { Shape, kMaxRank };",
            "struct A { int Volume(int a) { return 1; } int Twice() { return Volume(2); } };",
            '#include "Shape"',
        ):
            self.assert_clean("core/a.cc", f"{code}\n")

    def test_names_of_tests_are_no_use(self):
        self.write("core/shape.h", _SHAPE_H)
        gtest = '#include "gtest/gtest.h"\n'
        self.assert_clean("core/a_test.cc", gtest + "TEST(Shape, Order) {}\nINSTANTIATE_TEST_SUITE_P(Order, A, B);\n")
        self.assertEqual(len(self.check("core/a_test.cc", gtest + "TEST_F(Shape, Order) {}\n")), 1)

    def test_the_name_of_a_class_that_is_included(self):
        """A method of a base class is called like a function."""
        self.write("core/shape.h", _SHAPE_H)
        self.write("core/base.h", "class Base {\n  int Volume(int a);\n};\n")
        self.assert_clean("core/a.cc", '#include "core/base.h"\nclass A : Base { int B() { return Volume(1); } };\n')

    def test_a_name_that_two_headers_declare(self):
        self.write("core/shape.h", _SHAPE_H)
        self.write("core/other.h", "class Shape {};\n")
        self.assert_missing("core/a.cc", "Shape s;\n", 1, "Shape needs core/other.h or core/shape.h")
        self.assert_clean("core/a.cc", '#include "core/other.h"\nShape s;\n')

    def test_headers_of_ours_pass_on_what_they_include(self):
        self.write("core/shape.h", _SHAPE_H)
        self.write("core/b.h", '#include <vector>\n#include "core/shape.h"\nclass B : Shape { std::vector<int> b; };\n')
        self.write("core/c.h", '#include "core/b.h"\nclass C : B {};\n')
        self.assert_clean("core/a.cc", '#include "core/c.h"\nShape s;\nstd::vector<C> v;\n')
        self.assertEqual(len(self.check("core/a.cc", "class C;\nShape s;\nstd::vector<C> v;\n")), 2)

    def test_standard_library(self):
        for code, found in (
            ("std::vector<int> x;", "std::vector needs vector"),
            ("auto x = std::move(y);", "std::move needs algorithm or utility"),
            ("auto x = std::chrono::seconds(1);", "std::chrono needs chrono"),
            ("auto x = std::string::npos;", "std::string needs string"),
            ("std::atomic<bool> x;", "std::atomic needs atomic"),
            ("int64_t x;", "int64_t needs cstdint"),
        ):
            self.assert_missing("core/a.cc", f"\n{code}\n", 2, found)
            self.assert_clean("core/a.cc", f"#include <{found.split()[2]}>\n{code}\n")

    def test_libraries(self):
        for code, found in (
            ("absl::StatusOr<int> x;", "absl::StatusOr needs absl/status/statusor.h"),
            ("auto x = absl::StrCat(1);", "absl::StrCat needs absl/strings/str_cat.h"),
            ("absl::Span<int> x;", "absl::Span needs absl/types/span.h"),
            ("void F() { EXPECT_EQ(1, 1); }", "EXPECT_EQ needs gtest/gtest.h"),
            ("void F() { EXPECT_THAT(1, 1); }", "EXPECT_THAT needs gmock/gmock.h"),
            ("nlohmann::json x;", "nlohmann needs nlohmann/json.hpp"),
        ):
            self.assert_missing("core/a.cc", f"\n{code}\n", 2, found)
            self.assert_clean("core/a.cc", f'#include "{found.split()[2]}"\n{code}\n')

    def test_headers_that_stand_for_others(self):
        self.assert_clean("core/a.cc", '#include "absl/status/statusor.h"\nabsl::Status s;\n')
        self.assert_clean("core/a.cc", '#include "gmock/gmock.h"\nTEST(A, B) { EXPECT_EQ(1, 1); }\n')

    def test_a_name_that_the_tables_lack(self):
        for name in ("std::flat_map", "absl::no_such_map"):
            rule = "the tables of tools/check_includes lack"
            self.assertEqual(self.check("core/a.cc", f"\n{name}<int, int> m;\n"), [f"core/a.cc:2: {rule}: {name}"])

    def test_protos(self):
        self.write("core/keelson.h", "namespace keelson {}\n")
        self.write(
            "proto/keelson/v1/cluster.proto",
            "message TaskId { enum Inner { A = 0; } }\nenum Role {\n  ROLE_A = 0;\n}\n",
        )
        self.write(
            "proto/keelson/v1/chief_service.proto",
            'import "keelson/v1/cluster.proto";\nmessage Ask {}\nservice Chief { rpc Ask(Ask) returns (Ask); }\n',
        )
        for code, name, proto in (
            ("v1::TaskId id;", "TaskId", "cluster"),
            ("auto r = v1::ROLE_A;", "ROLE_A", "cluster"),
            ("keelson::v1::Ask ask;", "Ask", "chief_service"),
        ):
            self.assert_missing("core/a.cc", f"{code}\n", 1, f"v1::{name} needs keelson/v1/{proto}.pb.h")
            self.assert_clean("core/a.cc", f'#include "keelson/v1/chief_service.pb.h"\n{code}\n')
            self.assert_clean("core/a.cc", f'#include "keelson/v1/chief_service.grpc.pb.h"\n{code}\n')

    def test_unused_include(self):
        self.write("core/shape.h", _SHAPE_H)
        include = '#include "core/shape.h"\n'
        rule = "no name of the header is used: core/shape.h"
        for path in ("core/a.cc", "core/a.h", "core/shape_like.h", "core/volume_test.cc"):
            self.assertEqual(self.check(path, f"\n{include}int x;\n"), [f"{path}:2: {rule}"])
            self.assert_clean(path, include + "Extents x;\n")
            self.assert_clean(path, include + "int x = Volume(1);\n")
        for path in ("core/shape.cc", "core/shape_test.cc", "core/shape_more.cc"):
            self.assert_clean(path, include)

    def test_build_trees_are_left_out(self):
        for path in ("build/release/a.cc", "runs/x/a.h", ".git/a.h", "dashboard/page/node_modules/a.h"):
            self.assert_clean(path, "std::vector<int> x;\n")

    def test_program(self):
        self.write("core/a.h", "#include <vector>\nextern std::vector<int> a;\n")
        good = self.run_program("check_includes")
        self.assertEqual((good.returncode, good.stdout), (0, "check_includes: 1 files, 0 violations\n"))
        self.write("core/b.h", "std::vector<int> b;\n")
        bad = self.run_program("check_includes")
        self.assertEqual(bad.returncode, 1)
        self.assertIn("core/b.h:1: the header is not included: std::vector needs vector\n", bad.stdout)
        self.assertEqual(self.run_program("check_includes", "--unknown").returncode, 2)
        self.assertIn("--root", self.run_program("check_includes", "--help").stdout)
