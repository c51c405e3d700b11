// Forced in front of every source (-include) of the two ordered builds: std::unordered_map iterates by ascending
// or, with -DDESCENDING, by descending key. It settles ties in ngram-cache.cpp without a change to that file.
#pragma once
#include <bits/stdc++.h>

namespace std {
template <class K> struct ordered_less {
    bool operator()(const K & a, const K & b) const {
        if constexpr (is_arithmetic_v<K>) {
#ifdef DESCENDING
            return b < a;
#else
            return a < b;
#endif
        } else if constexpr (is_trivially_copyable_v<K>) {
            return memcmp(&a, &b, sizeof(K)) < 0;
        } else {
            return a < b;
        }
    }
};

template <class K, class V, class... Rest> struct ordered_map : map<K, V, ordered_less<K>> {
    using map<K, V, ordered_less<K>>::map;
};
} // namespace std

#define unordered_map ordered_map
