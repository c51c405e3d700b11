# Read by llama.cpp's own project() (recipe.py).

# llama-cpp-python forces LLAMA_BUILD_COMMON on: the code of llama.cpp's programs, 57 of 144 files, with which nothing
# of the package is linked.
set(LLAMA_BUILD_COMMON OFF)

# Six changes of ggml's CPU backend and two of llama.cpp itself make the narrow passes of speculative decoding cheaper
# (docs/measuring.md, "Narrow passes"). Of the first six, the third and the last are for every processor; the others are for
# x86, and other processors keep llama.cpp's own way. The second and the last change results by rounding, the others not at
# all. Set-up stops if a new llama.cpp has other words here.
function(replace_once file old new)
  set(path "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  file(READ "${path}" text)
  string(FIND "${text}" "${new}" done)
  if(done EQUAL -1)
    string(FIND "${text}" "${old}" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "llama.cpp's ${file} is not the one that packaging/setup/llama_cpp.cmake changes")
    endif()
    string(REPLACE "${old}" "${new}" text "${text}")
    file(WRITE "${path}" "${text}")
  endif()
endfunction()

# Threads share a matrix in chunks of 16 rows, and every chunk costs about a microsecond. A narrow pass has little
# work in each: four chunks a thread, as ggml's repacked matrices have, still balance cores of unequal speed.
replace_once(ggml/src/ggml-cpu/ggml-cpu.c
"        chunk_size = 64;
    }
"
"        chunk_size = 64;
    }
#if defined(__AVX2__)
    if (nr1 <= 8) {
        chunk_size = MAX(chunk_size, (nr0 + nth * 4 - 1) / (nth * 4));
    }
#endif
")

# The kernels for prompts are slower on a few tokens than one token's kernel, run for each while the weights are in the
# cache (narrow.h).
replace_once(ggml/src/ggml-cpu/llamafile/sgemm.cpp
"    if (n < 2)
        return false;
#endif
"
"    if (n < 2)
        return false;
#endif
#if defined(__AVX2__) && defined(__FMA__) && defined(__GNUC__)
#if defined(__AVX512BF16__)
    const bool wide = Atype == GGML_TYPE_F32;
#else
    const bool wide = Atype == GGML_TYPE_F32 || Atype == GGML_TYPE_BF16;
#endif
    if (n <= (wide ? 1 : Atype == GGML_TYPE_Q8_0 ? 16 : 8))
        return false;
#endif
")

# A head with a reduced vocabulary begins its row of logits as one of -inf: 49,152 rows of one number each, which took a
# third of a draft step of SmolLM2's head. Without gaps they are one row.
replace_once(ggml/src/ggml-cpu/ops.cpp
"    for (int64_t ir = ir0; ir < ir1; ++ir) {
        const int64_t i03 = ir/(ne2*ne1);
        const int64_t i02 = (ir - i03*ne2*ne1)/ne1;
        const int64_t i01 = (ir - i03*ne2*ne1 - i02*ne1);

        float * dst_ptr  = (float *) ((char *) dst->data + i03*nb3 + i02*nb2 + i01*nb1);

        ggml_vec_set_f32(ne0, dst_ptr, c);
"
"    if (ggml_is_contiguous(dst)) {
        std::fill_n((float *) dst->data + ne0*ir0, ne0*(ir1 - ir0), c);
        return;
    }

    for (int64_t ir = ir0; ir < ir1; ++ir) {
        const int64_t i03 = ir/(ne2*ne1);
        const int64_t i02 = (ir - i03*ne2*ne1)/ne1;
        const int64_t i01 = (ir - i03*ne2*ne1 - i02*ne1);

        float * dst_ptr  = (float *) ((char *) dst->data + i03*nb3 + i02*nb2 + i01*nb1);

        ggml_vec_set_f32(ne0, dst_ptr, c);
")

# A row of weights of F16, BF16, Q8_0 or Q4_1 is read and unpacked once for up to four tokens, not once for each.
file(COPY "${CMAKE_CURRENT_LIST_DIR}/narrow.h" DESTINATION "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu")
replace_once(ggml/src/ggml-cpu/ggml-cpu.c
"#include \"tiled/tiled.h\"
"
"#include \"tiled/tiled.h\"
#include \"narrow.h\"
")
replace_once(ggml/src/ggml-cpu/ggml-cpu.c
"    const size_t src1_col_stride = src1_cont || src1->type != vec_dot_type ? row_size : nb11;
"
"    const size_t src1_col_stride = src1_cont || src1->type != vec_dot_type ? row_size : nb11;

#ifdef NARROW_COLS
    if (ne12*ne13 == 1 && narrow_mul_mat(type, ne00, ir0_end - ir0_start,
            (const char *) src0->data + ir0_start*nb01, nb01, ir1_end - ir1_start,
            (const char *) wdata + ir1_start*src1_col_stride, src1_col_stride,
            (char *) dst->data + ir0_start*sizeof(float) + ir1_start*nb1, nb1)) {
        return;
    }
#endif
")

# ggml repacks Q4_0. Its kernels unpacked a matrix again for each of up to three tokens, and changed signs for every product.
# Columns are kept one by one, where gemm wants four interleaved.
file(COPY "${CMAKE_CURRENT_LIST_DIR}/narrow_q4_0.h" DESTINATION "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu")
replace_once(ggml/src/ggml-cpu/repack.cpp
"#include \"repack.h\"
"
"#include \"repack.h\"
#include \"narrow_q4_0.h\"
")
replace_once(ggml/src/ggml-cpu/repack.cpp
"            for (int64_t i11 = ith * 4; i11 < ne11 - ne11 % 4; i11 += nth * 4) {
                ggml_quantize_mat_t<INTER_SIZE, PARAM_TYPE>((float *) (data_ptr + i11 * nb11),
                                                            (void *) (wdata_ptr + i11 * nbw1), 4, ne10);
            }

            const int64_t i11_processed = ne11 - ne11 % 4;
"
"            int64_t i11_processed = ne11 - ne11 % 4;
#ifdef NARROW_COLS
            if (narrow_q4_0_takes<BLOC_TYPE, INTER_SIZE, NB_COLS>(ne10, ne12)) {
                i11_processed = 0;
            }
#endif
            for (int64_t i11 = ith * 4; i11 < i11_processed; i11 += nth * 4) {
                ggml_quantize_mat_t<INTER_SIZE, PARAM_TYPE>((float *) (data_ptr + i11 * nb11),
                                                            (void *) (wdata_ptr + i11 * nbw1), 4, ne10);
            }

")
replace_once(ggml/src/ggml-cpu/repack.cpp
"        // If there are more than three rows in src1, use gemm; otherwise, use gemv.
        if (nrows > 3) {
            gemm<"
"#ifdef NARROW_COLS
        if (narrow_q4_0_takes<BLOC_TYPE, INTER_SIZE, NB_COLS>(ne10, ne12)) {
            narrow_q4_0(ne10, ncols/8, src0_ptr + src0_start*nb01, nrows, src1_ptr, src1_col_stride,
                        (char *) ((float *) dst_ptr + src0_start), nb1);
            return;
        }
#endif

        // If there are more than three rows in src1, use gemm; otherwise, use gemv.
        if (nrows > 3) {
            gemm<")

# With several threads the attention of one token was summed in another way than that of several. Now it is one way for all
# passes below 64 tokens, and a faster one. Its room is for all parts of the cache, for each token and head.
file(COPY "${CMAKE_CURRENT_LIST_DIR}/attention.h" DESTINATION "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu")
replace_once(ggml/src/ggml-cpu/ops.cpp
"static void ggml_compute_forward_flash_attn_ext_f16(
        const ggml_compute_params * params,
        ggml_tensor * dst) {
"
"#include \"attention.h\"

static void ggml_compute_forward_flash_attn_ext_f16(
        const ggml_compute_params * params,
        ggml_tensor * dst) {
    if (narrow_attention(params, dst)) {
        return;
    }
")
replace_once(ggml/src/ggml-cpu/ggml-cpu.c
"                        size_t n_chunks = n_tasks;
                        size_t decode   = sizeof(float)*(neq2*n_chunks*(2+DV) "
"                        size_t decode   = sizeof(float)*(neq2*MIN(node->src[0]->ne[1], GGML_FA_TILE_Q)*MIN(node->src[1]->ne[1]/256 + 1, 16)*(16+DV) ")

# A pass over another number of tokens than the last one built its graph anew: half a millisecond of SmolLM2's three. On a
# CPU alone, the graphs of narrow passes are kept side by side. Each needs a scheduler of its own, in which its numbers lie.
replace_once(src/llama-context.h
"    llm_graph_result * gf_res_prev_active = nullptr;
"
"    llm_graph_result * gf_res_prev_active = nullptr;

    struct kept_graph {
        ggml_backend_sched_ptr sched;
        std::array<llm_graph_result_ptr, 2> gf_res_prev;
        llm_graph_result * gf_res_prev_active = nullptr;
    };
    std::map<uint32_t, kept_graph> kept_graphs; // all but the one in use, which is above and in `sched`
    uint32_t graph_in_use = 0;

    void swap_graph(uint32_t id) {
        auto & kept = kept_graphs[id];
        std::swap(kept.sched, sched);
        std::swap(kept.gf_res_prev, gf_res_prev);
        std::swap(kept.gf_res_prev_active, gf_res_prev_active);
    }

    void use_graph(uint32_t id) {
        if (id == graph_in_use) {
            return;
        }
        swap_graph(graph_in_use);
        swap_graph(id);
        graph_in_use = id;
        if (!sched) {
            sched.reset(ggml_backend_sched_new(backend_ptrs.data(), backend_buft.data(), backend_ptrs.size(),
                    gf_res_reserve->get_max_nodes(), false, cparams.op_offload));
        }
    }
")
replace_once(src/llama-context.cpp
"    for (auto & res : gf_res_prev) {
        res.reset();
    }
"
"    use_graph(0);
    kept_graphs.clear();
    for (auto & res : gf_res_prev) {
        res.reset();
    }
")
replace_once(src/llama-context.cpp
"        // reset the previous graph results to make sure that they won't be reused
"
"        use_graph(0);
        // reset the previous graph results to make sure that they won't be reused
")
replace_once(src/llama-context.cpp
"    auto * res = get_gf_res_prev();
    auto * gf  = res->get_gf();
"
"    const bool keeps = ubatch.n_tokens <= 8 && backends.size() == 1 && !cparams.training;
    use_graph(keeps ? 4*ubatch.n_tokens + 2*(gtype == LLM_GRAPH_TYPE_ENCODER) + (n_outputs > 0) : 0);

    auto * res = get_gf_res_prev();
    auto * gf  = res->get_gf();
")

# Of tokens whose logits are not wanted, such as accepted ones, an EAGLE-3 head needs only keys and values. They are a seventh
# of SmolLM2's head.
replace_once(src/models/eagle3.cpp
"#include \"models.h\"
"
"#include \"models.h\"
#include \"llama-kv-cache.h\"
")
replace_once(src/models/eagle3.cpp
"        cb(Kcur, \"Kcur_rope\", il);
"
"        cb(Kcur, \"Kcur_rope\", il);

        if (n_outputs == 0) {
            if (inp_attn->self_k_rot) {
                Kcur = llama_mul_mat_hadamard(ctx0, Kcur, inp_attn->self_k_rot);
            }
            if (inp_attn->self_v_rot) {
                Vcur = llama_mul_mat_hadamard(ctx0, Vcur, inp_attn->self_v_rot);
            }
            ggml_build_forward_expand(gf, inp_attn->mctx->cpy_k(ctx0, Kcur, inp_attn->get_k_idxs(), il));
            ggml_build_forward_expand(gf, inp_attn->mctx->cpy_v(ctx0, Vcur, inp_attn->get_v_idxs(), il));
            return;
        }
")
