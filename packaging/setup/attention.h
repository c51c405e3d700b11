// Attention of fewer than 64 tokens, as in a pass that verifies a draft. A token gets the very numbers that it gets alone, with
// any number of threads: the cache is cut into parts by its length alone, and a row's parts are merged in order. ggml cut it by
// threads, and for a single token only. More tokens have ggml's tiles. Included by ops.cpp (llama_cpp.cmake).
#pragma once

#define NARROW_PARTS  16   // at most
#define NARROW_CELLS  256  // of a part, at least
#define NARROW_BLOCK  64   // cells whose softmax is computed at once
#define NARROW_STRIDE(DV) ((DV) + 16) // numbers of a part: its sums, their weight, its largest score, room

#if defined(__AVX2__) && defined(__F16C__) && GGML_F16_EPR == GGML_F32_EPR
#define NARROW_F32_SUMS

// Adds weighted rows of F16 from number d on, as far as N vectors at once go, and returns the first number left. The sums
// stay in registers for all rows.
template <int N>
static int64_t narrow_add(int64_t d, int64_t DV, float * sums, const char * v, size_t nb, const int64_t * cells, const float * w, int n) {
    for (; d + N*GGML_F32_EPR <= DV; d += N*GGML_F32_EPR) {
        GGML_F32_VEC sum[N];
        for (int j = 0; j < N; ++j) {
            sum[j] = GGML_F32_VEC_LOAD(sums + d + j*GGML_F32_EPR);
        }
        for (int i = 0; i < n; ++i) {
            const ggml_fp16_t * row = (const ggml_fp16_t *) (v + cells[i]*nb) + d;
            const GGML_F32_VEC wi = GGML_F32_VEC_SET1(w[i]);
            for (int j = 0; j < N; ++j) {
                sum[j] = GGML_F32_VEC_FMA(sum[j], GGML_F16_VEC_LOAD(row + j*GGML_F16_EPR, j), wi);
            }
        }
        for (int j = 0; j < N; ++j) {
            GGML_F32_VEC_STORE(sums + d + j*GGML_F32_EPR, sum[j]);
        }
    }
    return d;
}
#endif

// Whether it was computed; wider passes and quantised caches are left to ggml.
static bool narrow_attention(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * q     = dst->src[0];
    const ggml_tensor * k     = dst->src[1];
    const ggml_tensor * v     = dst->src[2];
    const ggml_tensor * mask  = dst->src[3];
    const ggml_tensor * sinks = dst->src[4];

    if (params->use_ref || q->ne[1] >= GGML_FA_TILE_Q || q->ne[3] != 1 || q->type != GGML_TYPE_F32 || k->type != v->type ||
        (k->type != GGML_TYPE_F16 && k->type != GGML_TYPE_F32)) {
        return false;
    }

    const int64_t DK     = k->ne[0];
    const int64_t DV     = v->ne[0];
    const int64_t n_kv   = k->ne[1];
    const int64_t tokens = q->ne[1];
    const int64_t heads  = q->ne[2];
    const int64_t rows   = heads*tokens;
    const int64_t size   = MAX(NARROW_CELLS, (n_kv + NARROW_PARTS - 1)/NARROW_PARTS);
    const int64_t parts  = (n_kv + size - 1)/size;
    const int     ith    = params->ith;
    const int     nth    = params->nth;
    const bool    f16    = v->type == GGML_TYPE_F16;

    float scale, max_bias, softcap;
    memcpy(&scale,    (const float *) dst->op_params + 0, sizeof(float));
    memcpy(&max_bias, (const float *) dst->op_params + 1, sizeof(float));
    memcpy(&softcap,  (const float *) dst->op_params + 2, sizeof(float));
    if (softcap != 0.0f) {
        scale /= softcap;
    }
    const uint32_t n_head_log2 = 1u << (uint32_t) floor(log2(heads));
    const float m0 = powf(2.0f, -max_bias/n_head_log2);
    const float m1 = powf(2.0f, -max_bias/2.0f/n_head_log2);

    const ggml_vec_dot_t dot = ggml_get_type_traits_cpu(k->type)->vec_dot;

    // A row of q in the cache's type, and its sums if those are F16, for each thread; then the parts of all rows.
    float * own   = (float *) params->wdata + ith*(DK + DV + CACHE_LINE_SIZE_F32);
    float * table = (float *) params->wdata + nth*(DK + DV + CACHE_LINE_SIZE_F32);

    // Each thread has the parts of some rows, and takes them by place: keys and values of several heads are side by side.
    const int64_t start = rows*parts*ith/nth;
    const int64_t stop  = rows*parts*(ith + 1)/nth;
    for (int64_t part = 0; part < parts; ++part)
    for (int64_t row = (start - part + parts - 1)/parts; row*parts + part < stop; ++row) {
        const int64_t head  = row/tokens;
        const int64_t token = row%tokens;

        const char * from = (const char *) q->data + token*q->nb[1] + head*q->nb[2];
        if (f16) {
            ggml_cpu_fp32_to_fp16((const float *) from, (ggml_fp16_t *) own, DK);
        } else {
            memcpy(own, from, DK*sizeof(float));
        }

        const float slope = max_bias <= 0.0f ? 1.0f : head < n_head_log2 ? powf(m0, head + 1) : powf(m1, 2*(head - n_head_log2) + 1);
        const ggml_fp16_t * biases = mask ? (const ggml_fp16_t *)
            ((const char *) mask->data + token*mask->nb[1] + (head%mask->ne[2])*mask->nb[2]) : nullptr;
        const char * keys   = (const char *) k->data + head/(heads/k->ne[2])*k->nb[2];
        const char * values = (const char *) v->data + head/(heads/v->ne[2])*v->nb[2];

        float * sums = table + (row*parts + part)*NARROW_STRIDE(DV);
        float   S    = 0.0f;
        float   M    = -INFINITY;
        std::fill_n(sums, DV, 0.0f);
#if !defined(NARROW_F32_SUMS)
        ggml_fp16_t * sums16 = (ggml_fp16_t *) (own + DK);
        memset(sums16, 0, DV*sizeof(ggml_fp16_t));
#endif

        const int64_t first = part*size;
        const int64_t end   = MIN(first + size, n_kv);
        for (int64_t at = first; at < end; at += NARROW_BLOCK) {
            float   s[NARROW_BLOCK];
            int64_t cells[NARROW_BLOCK];
            int     n = 0;
            float   most = M;
            for (int64_t cell = at; cell < MIN(at + NARROW_BLOCK, end); ++cell) {
                const float bias = biases ? slope*GGML_CPU_FP16_TO_FP32(biases[cell]) : 0.0f;
                if (bias == -INFINITY) {
                    continue;
                }
                dot(DK, s + n, 0, keys + cell*k->nb[1], 0, own, 0, 1);
                s[n] *= scale;
                if (softcap != 0.0f) {
                    s[n] = softcap*tanhf(s[n]);
                }
                s[n] += bias;
                most = MAX(most, s[n]);
                cells[n++] = cell;
            }
            if (n == 0) {
                continue;
            }

            if (most > M) {
                const float less = expf(M - most);
                ggml_vec_scale_f32(DV, sums, less);
#if !defined(NARROW_F32_SUMS)
                ggml_vec_scale_f16(DV, sums16, less);
#endif
                S *= less;
                M = most;
            }
            std::fill_n(s + n, NARROW_BLOCK - n, -INFINITY);
            S += ggml_vec_soft_max_f32(NARROW_BLOCK, s, s, M);

            if (!f16) {
                for (int i = 0; i < n; ++i) {
                    ggml_vec_mad_f32(DV, sums, (const float *) (values + cells[i]*v->nb[1]), s[i]);
                }
                continue;
            }
#if defined(NARROW_F32_SUMS)
            int64_t d = narrow_add<4>(0, DV, sums, values, v->nb[1], cells, s, n);
            d = narrow_add<1>(d, DV, sums, values, v->nb[1], cells, s, n);
            for (; d < DV; ++d) {
                for (int i = 0; i < n; ++i) {
                    sums[d] += s[i]*GGML_CPU_FP16_TO_FP32(((const ggml_fp16_t *) (values + cells[i]*v->nb[1]))[d]);
                }
            }
#else
            for (int i = 0; i < n; ++i) {
                ggml_vec_mad_f16(DV, sums16, (const ggml_fp16_t *) (values + cells[i]*v->nb[1]), s[i]);
            }
#endif
        }
#if !defined(NARROW_F32_SUMS)
        if (f16) {
            ggml_cpu_fp16_to_fp32(sums16, sums, DV);
        }
#endif
        sums[DV]     = S;
        sums[DV + 1] = M;
    }

    ggml_barrier(params->threadpool);

    for (int64_t row = ith; row < rows; row += nth) {
        float * sums = table + row*parts*NARROW_STRIDE(DV);
        float   S    = sums[DV];
        float   M    = sums[DV + 1];
        for (int64_t part = 1; part <= parts; ++part) {
            const float * more = sums + part*NARROW_STRIDE(DV); // after the parts of the cache, a sink without values
            const bool    sink = part == parts;
            if (sink ? sinks == nullptr : more[DV] == 0.0f) {
                continue;
            }
            const float own_M = sink ? ((const float *) sinks->data)[row/tokens] : more[DV + 1];
            const float most  = MAX(M, own_M);
            const float a = expf(M - most);
            const float b = expf(own_M - most);
            ggml_vec_scale_f32(DV, sums, a);
            if (!sink) {
                ggml_vec_mad_f32(DV, sums, more, b);
            }
            S = S*a + (sink ? 1.0f : more[DV])*b;
            M = most;
        }
        ggml_vec_scale_f32(DV, sums, S == 0.0f ? 0.0f : 1.0f/S);
        memcpy((char *) dst->data + (row/tokens + row%tokens*heads)*dst->nb[1], sums, DV*sizeof(float));
    }
    return true;
}
