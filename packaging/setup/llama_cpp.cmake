# Read by llama.cpp's own project() (recipe.py).

# llama-cpp-python forces LLAMA_BUILD_COMMON on: the code of llama.cpp's programs, 57 of 144 files, with which nothing
# of the package is linked.
set(LLAMA_BUILD_COMMON OFF)

# Two changes of ggml's CPU backend make the narrow passes of speculative decoding cheaper (docs/measuring.md, "Narrow
# passes"). They were measured on x86, and other processors keep llama.cpp's own way. Results change by rounding
# alone. Set-up stops if a new llama.cpp has other words at these places.
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
# cache.
replace_once(llamafile/sgemm.cpp
"    if (n < 2)
        return false;
#endif
"
"    if (n < 2)
        return false;
#endif
#if defined(__AVX2__)
    const bool wide = Atype == GGML_TYPE_F32 || Atype == GGML_TYPE_BF16;
    if (n <= (wide ? 1 : Atype == GGML_TYPE_F16 ? 3 : 8))
        return false;
#endif
")
