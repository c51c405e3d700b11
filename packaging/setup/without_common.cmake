# Read by llama.cpp's own project() (recipe.py). llama-cpp-python forces LLAMA_BUILD_COMMON on: the code of
# llama.cpp's programs, 57 of 144 files, with which nothing of the package is linked.
set(LLAMA_BUILD_COMMON OFF)
