#!/bin/sh
# Build the generator three times against llama.cpp's unmodified sources; README.md beside says why.
#   build_ngram_mod_cache.sh LLAMA_CPP_FOLDER FOLDER_OF_LIBLLAMA OUTPUT_FOLDER
set -eu
sources=$1 libraries=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
include="-I$sources/common -I$sources/include -I$sources/ggml/include -I$sources/src -I$sources/vendor -I$sources"
for order in plain ascending descending; do
    case $order in
        plain) flags="" ;;
        ascending) flags="-include $here/ordered_map.h" ;;
        descending) flags="-include $here/ordered_map.h -DDESCENDING" ;;
    esac
    mkdir -p "$out/$order"
    for name in speculative common log ngram-mod ngram-cache ngram-map; do
        g++ -std=c++17 -O1 -w $flags $include -c "$sources/common/$name.cpp" -o "$out/$order/$name.o"
    done
    g++ -std=c++17 -O1 $flags $include -c "$here/ngram_mod_cache.cpp" -o "$out/$order/vectors.o"
    link="$out/$order/*.o -L$libraries -lllama -lggml -lggml-base -lggml-cpu -Wl,-rpath,$libraries -lpthread"
    # What only a model needs (samplers, JSON) is bound to never_called().
    missing=$(g++ $link -Wl,--no-demangle -o "$out/$order/vectors" 2>&1 |
        sed -n "s/.*undefined reference to \`\(.*\)'.*/-Wl,--defsym=\1=never_called/p" | sort -u)
    g++ $link $missing -o "$out/$order/vectors"
done
