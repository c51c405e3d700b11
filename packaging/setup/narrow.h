// Matrix products with few columns, as in a pass that verifies a draft: a row of weights is read and unpacked once for
// four columns. Every number is computed in the order of ggml's vec_dot for one column, so it is the same, bit for bit.
// Included by ggml-cpu.c (llama_cpp.cmake).
#pragma once

#include "ggml-cpu-impl.h"
#include "quants.h"
#include "simd-mappings.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__GNUC__)

#include <immintrin.h>

#define NARROW_COLS 8
#define NARROW_BLOCKS 512  // of 32 numbers in a row: twice the widest model of 2026

// Factors of the columns' blocks, unpacked once for all rows.
typedef struct {
    float d[NARROW_BLOCKS][NARROW_COLS];
    float s[NARROW_BLOCKS][NARROW_COLS];
} narrow_factors;

// The dot products of one row of weights with up to four columns, by bytes apart, of which the first is column `first`
// of the factors. The compiler sees cols as a constant and keeps all sums in registers.
#define NARROW_DOT(name)                                                                                               \
    static inline __attribute__((always_inline)) void name(int n, const void * row, const char * y, size_t by,         \
                                                           const narrow_factors * factors, int first, float * result,  \
                                                           int cols)

static inline float narrow_hsum(__m256 x) {
    __m128 sum = _mm_add_ps(_mm256_extractf128_ps(x, 1), _mm256_castps256_ps128(x));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

// Sums of four products of bytes; those of x are unsigned.
static inline __m256 narrow_products(__m256i x, __m256i y) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_cvtepi32_ps(_mm256_dpbusd_epi32(_mm256_setzero_si256(), x, y));
#elif defined(__AVXVNNI__)
    return _mm256_cvtepi32_ps(_mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), x, y));
#else
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(_mm256_set1_epi16(1), _mm256_maddubs_epi16(x, y)));
#endif
}

NARROW_DOT(narrow_f16) {
    (void) factors;
    (void) first;
    const ggml_fp16_t * x = row;
    const int steps = n & ~(GGML_F16_STEP - 1);
    GGML_F16_VEC sum[4][GGML_F16_ARR];
    for (int c = 0; c < cols; c++) {
        for (int j = 0; j < GGML_F16_ARR; j++) {
            sum[c][j] = GGML_F16_VEC_ZERO;
        }
    }
    for (int i = 0; i < steps; i += GGML_F16_STEP) {
        for (int j = 0; j < GGML_F16_ARR; j++) {
            const GGML_F16_VEC a = GGML_F16_VEC_LOAD(x + i + j*GGML_F16_EPR, j);
            for (int c = 0; c < cols; c++) {
                const ggml_fp16_t * yc = (const ggml_fp16_t *) (y + c*by);
                sum[c][j] = GGML_F16_VEC_FMA(sum[c][j], a, GGML_F16_VEC_LOAD(yc + i + j*GGML_F16_EPR, j));
            }
        }
    }
    for (int c = 0; c < cols; c++) {
        const ggml_fp16_t * yc = (const ggml_fp16_t *) (y + c*by);
        ggml_float all = 0.0;
        GGML_F16_VEC_REDUCE(all, sum[c]);
        for (int i = steps; i < n; i++) {
            all += (ggml_float) (GGML_CPU_FP16_TO_FP32(x[i])*GGML_CPU_FP16_TO_FP32(yc[i]));
        }
        result[c] = all;
    }
}

#if defined(__AVX512BF16__)
NARROW_DOT(narrow_bf16) {
    (void) factors;
    (void) first;
    const ggml_bf16_t * x = row;
    const int steps = n & ~63;
    __m512 sum[4][2];
    for (int c = 0; c < cols; c++) {
        sum[c][0] = sum[c][1] = _mm512_setzero_ps();
    }
    for (int i = 0; i < steps; i += 64) {
        for (int j = 0; j < 2; j++) {
            const __m512i a = _mm512_loadu_si512(x + i + 32*j);
            for (int c = 0; c < cols; c++) {
                const __m512i b = _mm512_loadu_si512((const ggml_bf16_t *) (y + c*by) + i + 32*j);
                sum[c][j] = _mm512_dpbf16_ps(sum[c][j], m512bh(a), m512bh(b));
            }
        }
    }
    for (int c = 0; c < cols; c++) {
        const ggml_bf16_t * yc = (const ggml_bf16_t *) (y + c*by);
        ggml_float all = (ggml_float) _mm512_reduce_add_ps(sum[c][0]) + (ggml_float) _mm512_reduce_add_ps(sum[c][1]);
        for (int i = steps; i < n; i++) {
            all += (ggml_float) (GGML_BF16_TO_FP32(x[i])*GGML_BF16_TO_FP32(yc[i]));
        }
        result[c] = all;
    }
}
#endif

NARROW_DOT(narrow_q8_0) {
    const block_q8_0 * x = row;
    __m256 sum[4] = { _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps() };
    for (int i = 0; i < n/QK8_0; i++) {
        const __m256 d = _mm256_set1_ps(GGML_CPU_FP16_TO_FP32(x[i].d));
        const __m256i qx = _mm256_loadu_si256((const __m256i *) x[i].qs);
        const __m256i ax = _mm256_sign_epi8(qx, qx);
        for (int c = 0; c < cols; c++) {
            const __m256i qy = _mm256_loadu_si256((const __m256i *) ((const block_q8_0 *) (y + c*by))[i].qs);
            const __m256 both = _mm256_mul_ps(d, _mm256_broadcast_ss(&factors->d[i][first + c]));
            sum[c] = _mm256_fmadd_ps(both, narrow_products(ax, _mm256_sign_epi8(qy, qx)), sum[c]);
        }
    }
    for (int c = 0; c < cols; c++) {
        result[c] = narrow_hsum(sum[c]);
    }
}

NARROW_DOT(narrow_q4_1) {
    const block_q4_1 * x = row;
    __m256 sum[4] = { _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps() };
    float mins[4] = { 0, 0, 0, 0 };
    for (int i = 0; i < n/QK4_1; i++) {
        const __m256 d = _mm256_set1_ps(GGML_CPU_FP16_TO_FP32(x[i].d));
        const float m = GGML_CPU_FP16_TO_FP32(x[i].m);
        const __m128i packed = _mm_loadu_si128((const __m128i *) x[i].qs);
        const __m256i halves = _mm256_inserti128_si256(_mm256_castsi128_si256(packed), _mm_srli_epi16(packed, 4), 1);
        const __m256i qx = _mm256_and_si256(_mm256_set1_epi8(15), halves);
        for (int c = 0; c < cols; c++) {
            const __m256i qy = _mm256_loadu_si256((const __m256i *) ((const block_q8_1 *) (y + c*by))[i].qs);
            const __m256 both = _mm256_mul_ps(d, _mm256_broadcast_ss(&factors->d[i][first + c]));
            mins[c] += m*factors->s[i][first + c];
            sum[c] = _mm256_fmadd_ps(both, narrow_products(qx, qy), sum[c]);
        }
    }
    for (int c = 0; c < cols; c++) {
        result[c] = narrow_hsum(sum[c]) + mins[c];
    }
}

#define NARROW_COLUMNS(dot, cols) case cols: dot(n, row, y + first*by, by, factors, first, result, cols); break

#define NARROW_ROW(dot)                                                                                                \
    switch (MIN(4, cols - first)) {                                                                                    \
        NARROW_COLUMNS(dot, 1);                                                                                        \
        NARROW_COLUMNS(dot, 2);                                                                                        \
        NARROW_COLUMNS(dot, 3);                                                                                        \
        NARROW_COLUMNS(dot, 4);                                                                                        \
    }

// Up to eight columns. Row by row: the next one comes from memory, and the second four columns find it in the cache.
static void narrow_eight(enum ggml_type type, int n, int64_t rows, const char * x, size_t bx, int cols, const char * y,
                         size_t by, char * dst, size_t bd, const narrow_factors * factors) {
    for (int64_t r = 0; r < rows; r++) {
        const char * row = x + r*bx;
        for (int first = 0; first < cols; first += 4) {
            float result[4];
            switch (type) {
                case GGML_TYPE_F16:  NARROW_ROW(narrow_f16);  break;
#if defined(__AVX512BF16__)
                case GGML_TYPE_BF16: NARROW_ROW(narrow_bf16); break;
#endif
                case GGML_TYPE_Q8_0: NARROW_ROW(narrow_q8_0); break;
                default:             NARROW_ROW(narrow_q4_1); break;
            }
            for (int c = 0; c < MIN(4, cols - first); c++) {
                *(float *) (dst + (first + c)*bd + r*sizeof(float)) = result[c];
            }
        }
    }
}

// Multiply rows x of n weights with columns y into dst, whose columns have consecutive rows; bx, by and bd are bytes
// from one row or column to the next. Returns false for what is left to ggml.
static bool narrow_mul_mat(enum ggml_type type, int64_t n, int64_t rows, const char * x, size_t bx, int64_t cols,
                           const char * y, size_t by, char * dst, size_t bd) {
#if defined(__AVX512BF16__)
    const bool plain = type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
#else
    const bool plain = type == GGML_TYPE_F16;
#endif
    if (!(plain || type == GGML_TYPE_Q8_0 || type == GGML_TYPE_Q4_1) || cols < 2 || n > NARROW_BLOCKS*QK8_0) {
        return false;
    }
    for (int64_t start = 0; start < cols; start += NARROW_COLS, y += NARROW_COLS*by, dst += NARROW_COLS*bd) {
        const int some = MIN(NARROW_COLS, cols - start);
        narrow_factors factors;
        for (int c = 0; c < some && !plain; c++) {
            for (int i = 0; i < n/QK8_0; i++) {
                if (type == GGML_TYPE_Q8_0) {
                    factors.d[i][c] = GGML_CPU_FP16_TO_FP32(((const block_q8_0 *) (y + c*by))[i].d);
                } else {
                    factors.d[i][c] = GGML_CPU_FP16_TO_FP32(((const block_q8_1 *) (y + c*by))[i].d);
                    factors.s[i][c] = GGML_CPU_FP16_TO_FP32(((const block_q8_1 *) (y + c*by))[i].s);
                }
            }
        }
        narrow_eight(type, n, rows, x, bx, some, y, by, dst, bd, &factors);
    }
    return true;
}

#endif
