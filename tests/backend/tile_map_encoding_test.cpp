#include "src/base/backend/tile_map_encoding.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// What the driver was given last.
struct Call {
  bool im2col = false;
  int element = -1, interleave = -1, swizzle = -1, promotion = -1, outside = -1, lower = 0, upper = 0;
  unsigned rank = 0;
  uint64_t address = 0, size = 0, stride = 0;
  uint32_t box = 0, step = 0, channels = 0, pixels = 0;
} given;
CUresult answer = CUDA_SUCCESS;

CUresult tiled(void* map, int element, unsigned rank, void* address, const uint64_t* sizes,
               const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
               int swizzle, int promotion, int outside) {
  given = {false,    element,    interleave, swizzle, promotion,
           outside,  0,          0,          rank,    reinterpret_cast<uint64_t>(address),
           sizes[0], strides[0], box[0],     steps[0]};
  std::memset(map, 0x5a, TileMap::bytes);
  return answer;
}
CUresult im2col(void* map, int element, unsigned rank, void* address, const uint64_t* sizes,
                const uint64_t* strides, const int* lower, const int* upper, uint32_t channels,
                uint32_t pixels, const uint32_t* steps, int interleave, int swizzle, int promotion,
                int outside) {
  given = {true,     element,    interleave, swizzle,  promotion,
           outside,  lower[0],   upper[0],   rank,     reinterpret_cast<uint64_t>(address),
           sizes[0], strides[0], 0,          steps[0], channels,
           pixels};
  std::memset(map, 0xa5, TileMap::bytes);
  return answer;
}
CUresult name_of(CUresult, const char** text) {
  *text = "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}

Driver driver() {
  Driver d;
  d.cuTensorMapEncodeTiled = tiled, d.cuTensorMapEncodeIm2col = im2col;
  d.cuGetErrorName = d.cuGetErrorString = name_of;
  answer = CUDA_SUCCESS;
  return d;
}

TileMap map() {
  TileMap m;
  m.element = TileMap::Element::bf16, m.sizes = {64, 8}, m.strides = {128}, m.box = {32, 4}, m.steps = {1, 2};
  m.swizzle = TileMap::Swizzle::of_64_bytes, m.promotion = TileMap::Promotion::to_128_bytes;
  m.interleave = TileMap::Interleave::of_16_bytes, m.outside = TileMap::Outside::nans;
  return m;
}

std::string refusal_of(const Driver& d, const TileMap& m) {
  std::byte bytes[TileMap::bytes];
  try {
    encode_tile_map(d, "gemm", m, 4096, bytes);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "none";
}

TEST(TileMapEncoding, GivesTheDriverEveryFieldAndTheAddress) {
  std::byte bytes[TileMap::bytes] = {};
  encode_tile_map(driver(), "gemm", map(), 4096, bytes);
  EXPECT_FALSE(given.im2col);
  EXPECT_EQ(std::to_integer<int>(bytes[127]), 0x5a);
  EXPECT_EQ(given.address, 4096u);
  EXPECT_EQ(given.rank, 2u);
  EXPECT_EQ(given.element, 9);  // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  EXPECT_EQ(given.size, 64u);
  EXPECT_EQ(given.stride, 128u);
  EXPECT_EQ(given.box, 32u);
  EXPECT_EQ(given.step, 1u);
  EXPECT_EQ(given.interleave, 1);
  EXPECT_EQ(given.swizzle, 2);
  EXPECT_EQ(given.promotion, 2);
  EXPECT_EQ(given.outside, 1);
}

TEST(TileMapEncoding, OfIm2colGivesThePixelsCorners) {
  TileMap m = map();
  m.box.clear(), m.sizes = {64, 8, 4}, m.lower = {-1}, m.upper = {-2}, m.channels = 16, m.pixels = 24;
  std::byte bytes[TileMap::bytes] = {};
  encode_tile_map(driver(), "conv", m, 8192, bytes);
  EXPECT_TRUE(given.im2col);
  EXPECT_EQ(std::to_integer<int>(bytes[0]), 0xa5);
  EXPECT_EQ(given.lower, -1);
  EXPECT_EQ(given.upper, -2);
  EXPECT_EQ(given.channels, 16u);
  EXPECT_EQ(given.pixels, 24u);
}

TEST(TileMapEncoding, OfOneAxisGivesAStrideThatIsNoNullPointer) {
  TileMap m = map();
  m.sizes = {64}, m.strides.clear(), m.box = {32}, m.steps = {1};
  EXPECT_EQ(refusal_of(driver(), m), "none");
  EXPECT_EQ(given.rank, 1u);
  EXPECT_EQ(given.stride, 0u);
}

TEST(TileMapEncoding, SaysWhichFunctionsMapTheDriverDoesNotTake) {
  EXPECT_EQ(refusal_of(Driver{}, map()),
            "gemm: the NVIDIA driver encodes no tensor maps; one for CUDA 12 or newer is needed");
  const Driver d = driver();
  answer = 1;
  EXPECT_EQ(refusal_of(d, map()),
            "gemm: the driver refuses a tensor map: CUDA_ERROR_INVALID_VALUE (CUDA_ERROR_INVALID_VALUE)");
}

}  // namespace
}  // namespace assay
