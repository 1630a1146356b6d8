#include "core/device/cpu/convolution.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "oneapi/dnnl/dnnl.hpp"

namespace keelson {
namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// oneDNN names extents [batch, channels, height, width] whatever their order in memory.
struct Descriptors {
  explicit Descriptors(const ConvGeometry& g)
      : x({g.batch, g.in_channels, g.in_height, g.in_width}, kFloat, memory::format_tag::nhwc),
        y({g.batch, g.out_channels, g.out_height, g.out_width}, kFloat, memory::format_tag::nhwc),
        filter(FilterDims(g), kFloat, memory::format_tag::hwio),
        any_filter(FilterDims(g), kFloat, memory::format_tag::any),
        strides{g.stride, g.stride},
        pad_start{g.pad_top, g.pad_left},
        pad_end{g.pad_bottom(), g.pad_right()} {}

  static memory::dims FilterDims(const ConvGeometry& g) {
    return {g.out_channels, g.in_channels, g.kernel, g.kernel};
  }

  memory::desc x, y, filter;
  // Activations keep their layout; the filter is small and takes the fastest one.
  memory::desc any_filter;
  memory::dims strides, pad_start, pad_end;
};

// The two functions below are all that differs between versions of oneDNN: before 3.0, what
// describes an operation is an object apart from the engine.
dnnl::convolution_forward::primitive_desc DescribeForward(const dnnl::engine& engine,
                                                          const Descriptors& d) {
  constexpr auto kTraining = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kTraining, kDirect, d.x, d.any_filter, d.y, d.strides, d.pad_start, d.pad_end};
#else
  return {{kTraining, kDirect, d.x, d.any_filter, d.y, d.strides, d.pad_start, d.pad_end}, engine};
#endif
}

template <typename Backward>
typename Backward::primitive_desc DescribeBackward(
    const dnnl::engine& engine, const Descriptors& d,
    const dnnl::convolution_forward::primitive_desc& forward) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kDirect, d.x, d.any_filter, d.y, d.strides, d.pad_start, d.pad_end, forward};
#else
  return {{kDirect, d.x, d.any_filter, d.y, d.strides, d.pad_start, d.pad_end}, engine, forward};
#endif
}

// An operand of a primitive: the caller's array, and a copy where the primitive's layout differs.
class Operand {
 public:
  Operand(int argument, const memory::desc& user, const memory::desc& internal,
          const dnnl::engine& engine)
      : argument_(argument), user_(user, engine, nullptr) {
    if (user != internal) internal_ = memory(internal, engine);
  }

  void Bind(const float* data) { user_.set_data_handle(const_cast<float*>(data)); }
  void Load(dnnl::stream& stream) {
    if (!internal_) return;
    if (!load_) load_ = dnnl::reorder(user_, *internal_);
    load_->execute(stream, user_, *internal_);
  }
  void Store(dnnl::stream& stream) {
    if (!internal_) return;
    if (!store_) store_ = dnnl::reorder(*internal_, user_);
    store_->execute(stream, *internal_, user_);
  }
  std::pair<const int, memory> Argument() const {
    return {argument_, internal_ ? *internal_ : user_};
  }

 private:
  int argument_;
  memory user_;
  std::optional<memory> internal_;
  std::optional<dnnl::reorder> load_, store_;
};

}  // namespace

struct Convolution::Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

class Convolution::Prepared {
 public:
  Prepared(dnnl::primitive primitive, Operand a, Operand b, Operand out)
      : primitive_(std::move(primitive)),
        a_(std::move(a)),
        b_(std::move(b)),
        out_(std::move(out)) {}

  void Run(dnnl::stream& stream, const float* a, const float* b, float* out) {
    a_.Bind(a);
    b_.Bind(b);
    out_.Bind(out);
    a_.Load(stream);
    b_.Load(stream);
    primitive_.execute(stream, {a_.Argument(), b_.Argument(), out_.Argument()});
    out_.Store(stream);
    stream.wait();
  }

 private:
  dnnl::primitive primitive_;
  Operand a_, b_, out_;
};

Convolution::Convolution() : engine_(std::make_unique<Engine>()) {}
Convolution::~Convolution() = default;

void Convolution::Forward(const ConvGeometry& geometry, const float* x, const float* filter,
                          float* y) {
  if (geometry.batch == 0) return;
  Prepare(geometry, Direction::kForward)->Run(engine_->stream, x, filter, y);
}

void Convolution::BackwardData(const ConvGeometry& geometry, const float* dy, const float* filter,
                               float* dx) {
  if (geometry.batch == 0) return;
  Prepare(geometry, Direction::kBackwardData)->Run(engine_->stream, dy, filter, dx);
}

void Convolution::BackwardFilter(const ConvGeometry& geometry, const float* x, const float* dy,
                                 float* dfilter) {
  if (geometry.batch == 0) {
    std::fill_n(dfilter, geometry.filter_size(), 0.0f);
    return;
  }
  Prepare(geometry, Direction::kBackwardFilter)->Run(engine_->stream, x, dy, dfilter);
}

Convolution::Prepared* Convolution::Prepare(const ConvGeometry& geometry, Direction direction) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->direction != direction || it->geometry != geometry) continue;
    entries_.splice(entries_.begin(), entries_, it);
    return it->prepared.get();
  }
  entries_.push_front({geometry, direction, Build(geometry, direction)});
  if (entries_.size() > kMaxPrepared) entries_.pop_back();
  return entries_.front().prepared.get();
}

std::unique_ptr<Convolution::Prepared> Convolution::Build(const ConvGeometry& geometry,
                                                          Direction direction) const {
  const dnnl::engine& engine = engine_->engine;
  const Descriptors d(geometry);
  const auto forward = DescribeForward(engine, d);
  if (direction == Direction::kForward) {
    return std::make_unique<Prepared>(
        dnnl::convolution_forward(forward), Operand(DNNL_ARG_SRC, d.x, forward.src_desc(), engine),
        Operand(DNNL_ARG_WEIGHTS, d.filter, forward.weights_desc(), engine),
        Operand(DNNL_ARG_DST, d.y, forward.dst_desc(), engine));
  }
  if (direction == Direction::kBackwardData) {
    const auto backward = DescribeBackward<dnnl::convolution_backward_data>(engine, d, forward);
    return std::make_unique<Prepared>(
        dnnl::convolution_backward_data(backward),
        Operand(DNNL_ARG_DIFF_DST, d.y, backward.diff_dst_desc(), engine),
        Operand(DNNL_ARG_WEIGHTS, d.filter, backward.weights_desc(), engine),
        Operand(DNNL_ARG_DIFF_SRC, d.x, backward.diff_src_desc(), engine));
  }
  const auto backward = DescribeBackward<dnnl::convolution_backward_weights>(engine, d, forward);
  return std::make_unique<Prepared>(
      dnnl::convolution_backward_weights(backward),
      Operand(DNNL_ARG_SRC, d.x, backward.src_desc(), engine),
      Operand(DNNL_ARG_DIFF_DST, d.y, backward.diff_dst_desc(), engine),
      Operand(DNNL_ARG_DIFF_WEIGHTS, d.filter, backward.diff_weights_desc(), engine));
}

}  // namespace keelson
