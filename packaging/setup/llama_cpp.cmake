# Read by llama.cpp's own project() (recipe.py).

# llama-cpp-python forces LLAMA_BUILD_COMMON on: the code of llama.cpp's programs, 57 of 144 files, with which nothing
# of the package is linked.
set(LLAMA_BUILD_COMMON OFF)

# Six changes of ggml's CPU backend make the narrow passes of speculative decoding cheaper (docs/measuring.md, "Narrow
# passes"). The third and the last are for every processor; the others are for x86, and other processors keep llama.cpp's
# own way. The second and the last change results by rounding, the others not at all. Set-up stops if a new llama.cpp has
# other words here.
function(replace_once file old new)
  set(path "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu/${file}")
  file(READ "${path}" text)
  string(FIND "${text}" "${new}" done)
  if(done EQUAL -1)
    string(FIND "${text}" "${old}" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "ggml's ${file} is not the one that packaging/setup/llama_cpp.cmake changes")
    endif()
    string(REPLACE "${old}" "${new}" text "${text}")
    file(WRITE "${path}" "${text}")
  endif()
endfunction()

# Threads share a matrix in chunks of 16 rows, and every chunk costs about a microsecond. A narrow pass has little
# work in each: four chunks a thread, as ggml's repacked matrices have, still balance cores of unequal speed.
replace_once(ggml-cpu.c
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
replace_once(llamafile/sgemm.cpp
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
replace_once(ops.cpp
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
replace_once(ggml-cpu.c
"#include \"tiled/tiled.h\"
"
"#include \"tiled/tiled.h\"
#include \"narrow.h\"
")
replace_once(ggml-cpu.c
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
replace_once(repack.cpp
"#include \"repack.h\"
"
"#include \"repack.h\"
#include \"narrow_q4_0.h\"
")
replace_once(repack.cpp
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
replace_once(repack.cpp
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
replace_once(ops.cpp
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
replace_once(ggml-cpu.c
"                        size_t n_chunks = n_tasks;
                        size_t decode   = sizeof(float)*(neq2*n_chunks*(2+DV) "
"                        size_t decode   = sizeof(float)*(neq2*MIN(node->src[0]->ne[1], GGML_FA_TILE_Q)*MIN(node->src[1]->ne[1]/256 + 1, 16)*(16+DV) ")
