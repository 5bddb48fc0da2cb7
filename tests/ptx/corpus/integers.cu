// Integer arithmetic of every width.
PROGRAM(add_subtract) {
  return (a + b) ^ u64(u32(a) - u32(c));
}
PROGRAM(multiply_high) {
#ifdef __CUDACC__
  return __umul64hi(a, b) ^ u64(__mul64hi(s64(b), s64(c))) ^ __umulhi(u32(a), u32(c)) ^
         u32(__mulhi(s32(a), s32(b)));
#else
  const u64 high = u64((static_cast<unsigned __int128>(a) * b) >> 64),
            signed_high = u64((static_cast<__int128>(s64(b)) * s64(c)) >> 64);
  return high ^ signed_high ^ (u64{u32(a)} * u32(c) >> 32) ^ u32(s64{s32(a)} * s32(b) >> 32);
#endif
}
PROGRAM(divide_unsigned) {
  return u64(u32(a) / (u32(b) | 1u)) << 32 | u32(a) % (u32(c) | 1u);
}
PROGRAM(divide_signed) {
  return u64(u32(s32(a) / (s32(b) | 2))) << 32 | u32(s32(a) % (s32(c) | 2));
}
PROGRAM(divide_long) {
  return a / (b >> (t & 31) | 1) + u64(s64(a) / (s64(c) | 2)) * 3 + s64(b) % 10;
}
PROGRAM(divide_constant) {
  return u32(a) / 7u + (u64(u32(s32(b) / 10)) << 20) + c % 1000 + s64(a) / 3;
}
PROGRAM(shorts) {
  const s16 x = s16(a), y = s16(b);
  const u16 p = u16(a), q = u16(c | 1);
  return u64(u16(x * y)) << 48 | u64(u16(p / q)) << 32 | u64(u16(x % s16(q | 2))) << 16 | u16(p + q * 3);
}
PROGRAM(bytes) {
  const s8 x = s8(a), y = s8(b);
  const u8 p = u8(a >> 8), q = u8(c);
  return u64(u32(x * y + (x >> 2))) << 32 | u64(u8(p + q)) << 16 | u64(u8(p << (q & 7))) << 8 |
         u8(x < y ? p : q);
}
PROGRAM(shifts) {
  const u32 n = t & 31;
  return (u64(u32(a) << n) << 32 | u32(s32(b) >> n)) ^ (c >> (t & 63)) ^ u64(s64(a) >> (t & 63));
}
PROGRAM(wide_shift_amounts) {
#ifdef __CUDACC__
  return u64(__funnelshift_l(u32(a), u32(b), t)) << 32 ^ __funnelshift_rc(u32(a), u32(b), t % 40) ^
         (u64(__funnelshift_r(u32(b), u32(c), t)) << 8) ^ __funnelshift_lc(u32(a), u32(c), t % 40);
#else
  auto left = [](u32 low, u32 high, u32 n) { return u32((u64{high} << 32 | low) << n >> 32); };
  auto right = [](u32 low, u32 high, u32 n) { return u32((u64{high} << 32 | low) >> n); };
  const u32 n = t & 31, m = t % 40 < 32 ? t % 40 : 32;
  const u32 left_c = m == 32 ? u32(a) : left(u32(a), u32(c), m), right_c = right(u32(a), u32(b), m);
  return u64(left(u32(a), u32(b), n)) << 32 ^ right_c ^ (u64(right(u32(b), u32(c), n)) << 8) ^ left_c;
#endif
}
PROGRAM(bit_counts) {
#ifdef __CUDACC__
  return u64(__popc(u32(a))) | u64(__popcll(b)) << 8 | u64(__clz(u32(a))) << 16 |
         u64(__clzll(b >> (t & 63))) << 24 | u64(__ffs(u32(c))) << 32 | u64(__ffsll(c << (t & 63))) << 40;
#else
  const u64 shifted = b >> (t & 63), up = c << (t & 63);
  return u64(__builtin_popcount(u32(a))) | u64(__builtin_popcountll(b)) << 8 |
         u64(u32(a) ? __builtin_clz(u32(a)) : 32) << 16 | u64(shifted ? __builtin_clzll(shifted) : 64) << 24 |
         u64(__builtin_ffs(s32(c))) << 32 | u64(__builtin_ffsll(s64(up))) << 40;
#endif
}
PROGRAM(bit_reversal) {
#ifdef __CUDACC__
  return __brevll(a) ^ __brev(u32(b)) ^ (u64(__byte_perm(u32(a), u32(c), 0x6240)) << 16);
#else
  auto reversed = [](u64 x, int bits) {
    u64 result = 0;
    for (int i = 0; i < bits; ++i) result |= (x >> i & 1) << (bits - 1 - i);
    return result;
  };
  const u64 bytes = (c << 32) | u32(a);
  u64 permuted = 0;
  for (int i = 0; i < 4; ++i) permuted |= (bytes >> (8 * (0x6240 >> 4 * i & 7)) & 255) << 8 * i;
  return reversed(a, 64) ^ reversed(u32(b), 32) ^ (permuted << 16);
#endif
}
PROGRAM(averages_and_differences) {
#ifdef __CUDACC__
  return u64(u32(__hadd(s32(a), s32(b)))) ^ u64(__urhadd(u32(a), u32(c))) << 32 ^
         u64(__sad(s32(a), s32(b), u32(c))) << 7 ^ __usad(u32(b), u32(c), u32(a)) ^
         u64(__mul24(s32(a), s32(b))) ^ __umul24(u32(b), u32(c));
#else
  auto signed24 = [](u64 x) { return s64{s32(u32(x) << 8) >> 8}; };
  const u32 distance = u32(s32(a) < s32(b) ? s64{s32(b)} - s32(a) : s64{s32(a)} - s32(b)) + u32(c);
  const u32 unsigned_distance = (u32(b) < u32(c) ? u32(c) - u32(b) : u32(b) - u32(c)) + u32(a);
  return u64(u32((s64{s32(a)} + s32(b)) >> 1)) ^ ((u64{u32(a)} + u32(c) + 1) >> 1) << 32 ^
         u64(distance) << 7 ^ unsigned_distance ^ u64(s64{s32(signed24(a) * signed24(b))}) ^
         u32((u32(b) & 0xffffff) * (c & 0xffffff));
#endif
}
PROGRAM(dot_products) {
#ifdef __CUDACC__
  return u64(__dp4a(u32(a), u32(b), u32(c))) << 32 | u32(__dp4a(s32(a), s32(b), s32(c))) ^
                                                         u32(__dp2a_lo(s32(a), s32(b), s32(c))) ^
                                                         __dp2a_hi(u32(a), u32(b), u32(c));
#else
  u32 plain = u32(c), with_sign = u32(c), low = u32(c), high = u32(c);
  for (int i = 0; i < 32; i += 8) {
    plain += u32(u8(a >> i)) * u8(b >> i);
    with_sign += u32(s8(a >> i) * s8(b >> i));
  }
  for (int i = 0; i < 2; ++i) {
    low += u32(s16(a >> 16 * i) * s8(b >> 8 * i));
    high += u32(u16(a >> 16 * i)) * u8(b >> (16 + 8 * i));
  }
  return u64(plain) << 32 | (with_sign ^ low ^ high);
#endif
}
PROGRAM(packed_bytes) {
#ifdef __CUDACC__
  return u64(__vadd4(u32(a), u32(b))) << 32 |
         (__vmaxu2(u32(a), u32(c)) ^ __vcmpeq4(u32(b), u32(c)) ^ __vabsdiffu4(u32(a), u32(b)) ^
          __vsubss2(u32(a), u32(b)) ^ __vmins2(u32(b), u32(c)));
#else
  u32 sum = 0, largest = 0, equal = 0, difference = 0, saturated = 0, least = 0;
  for (int i = 0; i < 32; i += 8) {
    sum |= u32(u8((a >> i) + (b >> i))) << i;
    equal |= (u8(b >> i) == u8(c >> i) ? 255u : 0u) << i;
    difference |= u32(u8(a >> i) < u8(b >> i) ? u8(b >> i) - u8(a >> i) : u8(a >> i) - u8(b >> i)) << i;
  }
  for (int i = 0; i < 32; i += 16) {
    largest |= u32(u16(a >> i) < u16(c >> i) ? u16(c >> i) : u16(a >> i)) << i;
    const s32 exact = s16(a >> i) - s16(b >> i);
    saturated |= u32(u16(exact < -32768 ? -32768 : exact > 32767 ? 32767 : exact)) << i;
    least |= u32(u16(s16(b >> i) < s16(c >> i) ? s16(b >> i) : s16(c >> i))) << i;
  }
  return u64(sum) << 32 | (largest ^ equal ^ difference ^ saturated ^ least);
#endif
}
PROGRAM(packed_shorts_dpx) {
#ifdef __CUDACC__
  return u64(__viaddmax_s16x2(u32(a), u32(b), u32(c))) << 32 |
         u32(__vimax3_s32(s32(a), s32(b), s32(c))) ^ __vimin_s16x2_relu(u32(a), u32(b));
#else
  u32 sum = 0, least = 0;
  for (int i = 0; i < 32; i += 16) {
    const s16 added = s16((a >> i) + (b >> i)), third = s16(c >> i);
    sum |= u32(u16(added < third ? third : added)) << i;
    const s16 x = s16(a >> i), y = s16(b >> i), smaller = x < y ? x : y;
    least |= u32(u16(smaller < 0 ? 0 : smaller)) << i;
  }
  s32 largest = s32(a) < s32(b) ? s32(b) : s32(a);
  largest = largest < s32(c) ? s32(c) : largest;
  return u64(sum) << 32 | (u32(largest) ^ least);
#endif
}
PROGRAM(wide_products) {
  return u64(u32(a)) * u32(b) + u64(s64{s32(b)} * s32(c)) + u64(u16(a) * u32(u16(b)));
}
PROGRAM(product_of_128_bits) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + c;
  return u64(product >> 64) ^ u64(product);
}
PROGRAM(comparisons) {
  return (u32(a) < u32(b)) | (s32(a) <= s32(b)) << 1 | (a > b) << 2 | (s64(a) >= s64(c)) << 3 |
         (u16(a) == u16(b)) << 4 | (s8(a) != s8(c)) << 5 | (s16(a) < s16(c)) << 6 |
         ((u32(a) < u32(b)) != (u32(b) < u32(c))) << 7;
}
PROGRAM(extremes) {
  const u32 small = u32(a) < u32(b) ? u32(a) : u32(b);
  const s64 large = s64(b) > s64(c) ? s64(b) : s64(c);
  return small ^ u64(large) ^ u64(s32(a) < 0 ? -s64{s32(a)} : s64{s32(a)}) ^ u64(s64(c) < 0 ? ~c : c);
}
