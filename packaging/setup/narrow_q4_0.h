// Products with a repacked Q4_0 matrix, whose rows lie in groups of eight: a group is read and unpacked once for four
// columns, without changes of signs. A block's sum is a whole number, and these are scaled and added in the order of ggml's
// gemv and gemm, so every number is the same, bit for bit. Included by repack.cpp (llama_cpp.cmake).
#pragma once

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && defined(__GNUC__)

#include <immintrin.h>

#define NARROW_COLS 8
#define NARROW_BLOCKS 512  // of 32 numbers in a row: twice the widest model of 2026

// Of the columns' blocks, unpacked once for all rows: the factor, and what the whole sum is too large by, as weights are
// read as 0 to 15 instead of -8 to 7.
struct narrow_columns {
    float d[NARROW_BLOCKS][NARROW_COLS];
    int over[NARROW_BLOCKS][NARROW_COLS];
};

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

// The weights of eight rows in a block: numbers 0 to 7, 8 to 15, 16 to 23 and 24 to 31, eight bytes a row.
struct narrow_weights {
    __m512i w[4];

    inline __attribute__((always_inline)) narrow_weights(const block_q4_0x8 & x) {
        const __m512i low = _mm512_set1_epi8(15), signs = _mm512_set1_epi8((char) 0x88);
        for (int i = 0; i < 2; i++) {
            const __m512i packed = _mm512_xor_si512(_mm512_loadu_si512(x.qs + 64*i), signs);
            w[i] = _mm512_and_si512(packed, low);
            w[i + 2] = _mm512_and_si512(_mm512_srli_epi16(packed, 4), low);
        }
    }

    // The sums of products with a column's block, a row each.
    inline __attribute__((always_inline)) __m256i sums(const block_q8_0 & y) const {
        __m512i sum = _mm512_setzero_si512();
        for (int i = 0; i < 4; i++) {
            long long eight;
            memcpy(&eight, y.qs + 8*i, 8);
            sum = _mm512_dpbusd_epi32(sum, w[i], _mm512_set1_epi64(eight));
        }
        return _mm512_cvtepi64_epi32(_mm512_add_epi32(sum, _mm512_srli_epi64(sum, 32)));
    }
};

#else

struct narrow_weights {
    __m256i w[4][2];  // of rows 0 to 3 and 4 to 7

    inline __attribute__((always_inline)) narrow_weights(const block_q4_0x8 & x) {
        const __m256i low = _mm256_set1_epi8(15), signs = _mm256_set1_epi8((char) 0x88);
        for (int i = 0; i < 2; i++) {
            for (int half = 0; half < 2; half++) {
                const __m256i at = _mm256_loadu_si256((const __m256i *) (x.qs + 64*i + 32*half));
                const __m256i packed = _mm256_xor_si256(at, signs);
                w[i][half] = _mm256_and_si256(packed, low);
                w[i + 2][half] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), low);
            }
        }
    }

    inline __attribute__((always_inline)) __m256i sums(const block_q8_0 & y) const {
        __m256i sum[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };
        for (int i = 0; i < 4; i++) {
            long long eight;
            memcpy(&eight, y.qs + 8*i, 8);
            const __m256i column = _mm256_set1_epi64x(eight);
            for (int half = 0; half < 2; half++) {
#if defined(__AVXVNNI__)
                sum[half] = _mm256_dpbusd_avx_epi32(sum[half], w[i][half], column);
#else
                const __m256i pairs = _mm256_maddubs_epi16(w[i][half], column);  // at most 2*15*127
                sum[half] = _mm256_add_epi32(sum[half], _mm256_madd_epi16(_mm256_set1_epi16(1), pairs));
#endif
            }
        }
        return _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[0], sum[1]), 0xd8);
    }
};

#endif

// Groups of eight rows times up to four columns, of which the first is column `first` of the factors.
template <int cols>
static void narrow_groups(int blocks, int64_t groups, const block_q4_0x8 * x, const char * y, size_t by, int first,
                          char * dst, size_t bd, const narrow_columns & columns) {
    for (int64_t g = 0; g < groups; g++, x += blocks) {
        __m256 all[cols];
        for (int c = 0; c < cols; c++) {
            all[c] = _mm256_setzero_ps();
        }
        for (int i = 0; i < blocks; i++) {
            const narrow_weights weights(x[i]);
            const __m256 d = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) x[i].d));
            for (int c = 0; c < cols; c++) {
                const __m256i sums = weights.sums(((const block_q8_0 *) (y + c*by))[i]);
                const __m256i exact = _mm256_sub_epi32(sums, _mm256_set1_epi32(columns.over[i][first + c]));
                const __m256 both = _mm256_mul_ps(d, _mm256_broadcast_ss(&columns.d[i][first + c]));
                all[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), both, all[c]);
            }
        }
        for (int c = 0; c < cols; c++) {
            _mm256_storeu_ps((float *) (dst + c*bd) + 8*g, all[c]);
        }
    }
}

// Whether products of this kind of matrix with columns of n numbers are done here.
template <typename BLOC_TYPE, int64_t INTER_SIZE, int64_t NB_COLS>
static bool narrow_q4_0_takes(int64_t n, int64_t planes) {
    const bool kind = std::is_same_v<BLOC_TYPE, block_q4_0> && INTER_SIZE == 8 && NB_COLS == 8;
    return kind && planes == 1 && n <= NARROW_BLOCKS*QK8_0;
}

// Multiply groups of rows x of n weights with columns y, Q8_0 rows of their own, into dst; by and bd are bytes from one
// column to the next.
static void narrow_q4_0(int64_t n, int64_t groups, const char * x, int64_t cols, const char * y, size_t by, char * dst,
                        size_t bd) {
    const int blocks = n/QK8_0;
    const auto * rows = (const block_q4_0x8 *) x;
    for (int64_t start = 0; start < cols; start += NARROW_COLS) {
        const int some = MIN(NARROW_COLS, cols - start);
        narrow_columns columns;
        for (int c = 0; c < some; c++) {
            for (int i = 0; i < blocks; i++) {
                const block_q8_0 & block = ((const block_q8_0 *) (y + c*by))[i];
                int sum = 0;
                for (int j = 0; j < QK8_0; j++) {
                    sum += block.qs[j];
                }
                columns.d[i][c] = GGML_CPU_FP16_TO_FP32(block.d);
                columns.over[i][c] = 8*sum;
            }
        }
        for (int first = 0; first < some; first += 4, y += 4*by, dst += 4*bd) {
            switch (MIN(4, some - first)) {
                case 1:  narrow_groups<1>(blocks, groups, rows, y, by, first, dst, bd, columns); break;
                case 2:  narrow_groups<2>(blocks, groups, rows, y, by, first, dst, bd, columns); break;
                case 3:  narrow_groups<3>(blocks, groups, rows, y, by, first, dst, bd, columns); break;
                default: narrow_groups<4>(blocks, groups, rows, y, by, first, dst, bd, columns); break;
            }
        }
    }
}

#endif
