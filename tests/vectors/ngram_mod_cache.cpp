// Parity vectors of ngram-mod and ngram-cache, made by llama.cpp's own classes through common_speculative_*().
// README.md beside this file says how it is built and run. Everything random comes from one generator of its own,
// and the texts do not depend on the drafts, so all builds play the same calls.
//
//   files DIR          write the lookup caches of the scenarios with common_ngram_cache_save
//   mod                scenarios of ngram-mod, JSON Lines on standard output
//   cache DIR          scenarios of ngram-cache with the files in DIR
//   dump FILE          read a lookup cache with common_ngram_cache_load and print it
//   lookup IN OUT      what llama-lookup saves: IN, merged with the n-grams of a text on standard input
#include "ngram-cache.h"
#include "speculative.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

// Stands for what only a model needs (samplers, JSON) and is not linked: see build_ngram_mod_cache.sh.
extern "C" void never_called() { abort(); }

static uint64_t rng_state = 1;

static uint32_t below(uint32_t n) {
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t) ((rng_state >> 11) % n);
}

static bool chance(uint32_t percent) { return below(100) < percent; }

// A text of blocks that come back, each time with a few tokens changed; repeat 0: plain noise.
static llama_tokens make_text(size_t length, uint32_t n_vocab, uint32_t repeat, uint32_t change) {
    llama_tokens text;
    while (text.size() < length) {
        const size_t size = 5 + below(90);
        if (chance(repeat) && text.size() > size) {
            const size_t from = below((uint32_t) (text.size() - size));
            for (size_t i = 0; i < size; ++i) {
                text.push_back(chance(change) ? (llama_token) below(n_vocab) : text[from + i]);
            }
        } else {
            for (size_t i = 0; i < size; ++i) {
                // low ids are common, as in a real vocabulary
                text.push_back((llama_token) below(1 + below(n_vocab)));
            }
        }
    }
    text.resize(length);
    return text;
}

static void print_ids(const llama_token * ids, size_t count) {
    printf("[");
    for (size_t i = 0; i < count; ++i) {
        printf(i ? ",%d" : "%d", ids[i]);
    }
    printf("]");
}

// One slot of one implementation, and the events as they are printed.
struct Player {
    common_speculative_ptr spec;
    llama_tokens text;
    size_t told = 0;   // tokens of the text that the events hold so far
    bool first = true;

    explicit Player(common_params_speculative & params) : spec(common_speculative_init(params, 1)) {}

    void comma() {
        if (!first) {
            printf(",");
        }
        first = false;
    }

    void told_all() {
        print_ids(text.data() + told, text.size() - told);
        told = text.size();
    }

    void begin(const llama_tokens & context) {
        text = context;
        told = 0;
        common_speculative_begin(spec.get(), 0, llama_tokens(text.begin(), text.end() - 1));
        comma();
        printf("[\"begin\",");
        told_all();
        printf("]");
    }

    // A long text that both sides make by the same formula.
    void begin_made(uint32_t seed, size_t count) {
        text.clear();
        for (size_t i = 0; i < count; ++i) {
            text.push_back((llama_token) (((uint32_t) (i + seed) * 2654435761u) >> 12));
        }
        told = count;
        common_speculative_begin(spec.get(), 0, llama_tokens(text.begin(), text.end() - 1));
        comma();
        printf("[\"begin_made\",%u,%zu]", seed, count);
    }

    llama_tokens draft(int k) {
        llama_tokens result;
        const llama_tokens prompt(text.begin(), text.end() - 1);
        auto & dp = common_speculative_get_draft_params(spec.get(), 0);
        dp = {};
        dp.drafting = true;
        dp.n_max    = k;
        dp.pos0     = (llama_pos) prompt.size();
        dp.id_last  = text.back();
        dp.prompt   = &prompt;
        dp.result   = &result;
        common_speculative_draft(spec.get());
        comma();
        printf("[\"draft\",");
        told_all();
        printf(",%d,", k);
        print_ids(result.data(), result.size());
        printf("]");
        return result;
    }

    void accept(size_t n_accepted) {
        common_speculative_accept(spec.get(), 0, (uint16_t) n_accepted);
        comma();
        printf("[\"accept\",%zu]", n_accepted);
    }
};

static size_t passed(const llama_tokens & draft, const llama_tokens & truth, size_t at) {
    size_t n = 0;
    while (n < draft.size() && at + n < truth.size() && draft[n] == truth[at + n]) {
        ++n;
    }
    return n;
}

enum class Luck { truth, none, mixed };

static void mod_scenario(int n_match, int n_min, int n_max, uint32_t n_vocab, uint32_t repeat, Luck luck, bool twice) {
    common_params_speculative params;
    params.types = { COMMON_SPECULATIVE_TYPE_NGRAM_MOD };
    params.ngram_mod.n_match = n_match;
    params.ngram_mod.n_min   = n_min;
    params.ngram_mod.n_max   = n_max;
    printf("{\"params\":{\"n_match\":%d,\"n_min\":%d,\"n_max\":%d},\"events\":[", n_match, n_min, n_max);
    Player player(params);
    std::vector<llama_tokens> chats;
    for (int i = 0; i < 2; ++i) {
        llama_tokens text = make_text(150 + below(300), n_vocab, repeat, 3);
        if (twice) { // long enough repeats for the default settings
            const llama_tokens once = text;
            text.insert(text.end(), once.begin(), once.end());
        }
        chats.push_back(text);
    }
    for (int generation = 0; generation < 4; ++generation) {
        const llama_tokens & truth = chats[below(2)];
        size_t at = 1 + below((uint32_t) truth.size() - 1);
        if (generation == 0 && chance(30)) {
            at = 1 + below(30);
        }
        player.begin(llama_tokens(truth.begin(), truth.begin() + at));
        for (int round = 0; round < 25 && at < truth.size(); ++round) {
            size_t n = 0;
            if (chance(92)) { // else a round of another strategy: neither draft nor accept reach this one
                const llama_tokens draft = player.draft(chance(70) ? 1024 : 1 + (int) below(80));
                n = passed(draft, truth, at);
                if (luck == Luck::none || (luck == Luck::mixed && chance(60))) {
                    n = 0;
                } else if (luck == Luck::mixed && !draft.empty()) {
                    n = below((uint32_t) draft.size() + 1);
                }
                if (!draft.empty()) {
                    player.accept(n);
                }
            } else {
                n = below(6);
            }
            for (size_t i = 0; i <= n && at < truth.size(); ++i) {
                player.text.push_back(truth[at++]);
            }
        }
    }
    printf("]}\n");
}

// More than a quarter of the pool in use: begin empties it.
static void mod_full_pool() {
    common_params_speculative params;
    params.types = { COMMON_SPECULATIVE_TYPE_NGRAM_MOD };
    params.ngram_mod.n_match = 6;
    params.ngram_mod.n_min   = 0;
    params.ngram_mod.n_max   = 12;
    printf("{\"params\":{\"n_match\":6,\"n_min\":0,\"n_max\":12},\"events\":[");
    Player player(params);
    const size_t counts[] = { 600000, 300000, 700000, 5000 };
    const uint32_t seeds[] = { 1, 700001, 1500001, 9 };
    for (int i = 0; i < 4; ++i) {
        player.begin_made(seeds[i], counts[i]);
        const llama_tokens made = player.text;
        for (const size_t place : { (size_t) 3000, counts[i] / 2 }) {
            for (size_t j = 0; j < 6; ++j) {
                player.text.push_back(made[place + j]);
            }
            player.draft(64);
        }
    }
    printf("]}\n");
}

static void play_mod() {
    rng_state = 20260731;
    const Luck lucks[] = { Luck::truth, Luck::none, Luck::mixed };
    for (int i = 0; i < 36; ++i) {
        const bool twice  = i % 6 < 2;
        const int n_match = i % 6 == 0 ? 24 : i % 6 == 1 ? 33 + (int) below(40) : 1 + (int) below(20);
        const int n_max   = i % 4 == 0 ? 64 : 1 + (int) below(40);
        const int n_min   = i % 4 == 0 ? (i % 8 ? 48 : 4) : (int) below(12); // above n_max now and then
        const uint32_t n_vocab = i % 5 == 4 ? 3 : 400 + below(30000);
        mod_scenario(n_match, n_min, n_max, n_vocab, i % 5 == 3 ? 30 : 85, lucks[i / 2 % 3], twice);
    }
    mod_full_pool();
}

static const uint32_t cache_vocabs[] = { 3, 12, 60, 400 };

static std::string cache_file(const std::string & dir, const char * kind, uint32_t n_vocab) {
    return dir + "/" + kind + "_" + std::to_string(n_vocab) + ".bin";
}

static void write_files(const std::string & dir) {
    rng_state = 4711;
    for (const uint32_t n_vocab : cache_vocabs) {
        llama_tokens text = make_text(1500, n_vocab, 60, 10);
        common_ngram_cache statics;
        common_ngram_cache_update(statics, LLAMA_NGRAM_STATIC, LLAMA_NGRAM_STATIC, text, (int) text.size(), false);
        common_ngram_cache_save(statics, cache_file(dir, "static", n_vocab));

        text = make_text(250, n_vocab, 60, 10);
        common_ngram_cache dynamic;
        common_ngram_cache_update(dynamic, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, text, (int) text.size(), false);
        common_ngram_cache_save(dynamic, cache_file(dir, "dynamic", n_vocab));
    }
}

static void cache_scenario(const std::string & dir, int number) {
    const uint32_t n_vocab = cache_vocabs[number % 4];
    const bool statics = (number / 4) % 4 & 1;
    const bool dynamic = (number / 4) % 4 & 2;
    common_params_speculative params;
    params.types = { COMMON_SPECULATIVE_TYPE_NGRAM_CACHE };
    if (statics) {
        params.ngram_cache.lookup_cache_static = cache_file(dir, "static", n_vocab);
    }
    if (dynamic) {
        params.ngram_cache.lookup_cache_dynamic = cache_file(dir, "dynamic", n_vocab);
    }
    printf("{\"vocab\":%u,\"static\":%s,\"dynamic\":%s,\"events\":[",
            n_vocab, statics ? "true" : "false", dynamic ? "true" : "false");
    Player player(params);
    for (int generation = 0; generation < 3; ++generation) {
        const llama_tokens truth = make_text(40 + below(260), n_vocab, 50, 8);
        // Below four tokens the original reads in front of its array: undefined there, so left out here.
        size_t at = 4 + below((uint32_t) truth.size() / 2);
        player.begin(llama_tokens(truth.begin(), truth.begin() + at));
        for (int round = 0; round < 30 && at < truth.size(); ++round) {
            if (chance(90)) {
                player.draft(1 + (int) below(12));
            }
            const size_t n = 1 + below(chance(50) ? 1 : 9);
            for (size_t i = 0; i < n && at < truth.size(); ++i) {
                player.text.push_back(truth[at++]);
            }
        }
    }
    printf("]}\n");
}

static void dump(common_ngram_cache & cache) {
    std::map<std::vector<llama_token>, std::map<llama_token, int32_t>> sorted;
    for (const auto & [ngram, part] : cache) {
        std::vector<llama_token> key;
        for (const llama_token token : ngram.tokens) {
            if (token != LLAMA_TOKEN_NULL) {
                key.push_back(token);
            }
        }
        for (const auto & [token, count] : part) {
            sorted[key][token] = count;
        }
    }
    printf("[");
    const char * comma = "";
    for (const auto & [key, part] : sorted) {
        printf("%s[", comma);
        print_ids(key.data(), key.size());
        for (const auto & [token, count] : part) {
            printf(",[%d,%d]", token, count);
        }
        printf("]");
        comma = ",";
    }
    printf("]\n");
}

int main(int argc, char ** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "files" && argc == 3) {
        write_files(argv[2]);
    } else if (what == "mod") {
        play_mod();
    } else if (what == "cache" && argc == 3) {
        rng_state = 90210;
        for (int i = 0; i < 32; ++i) {
            cache_scenario(argv[2], i);
        }
    } else if (what == "dump" && argc == 3) {
        common_ngram_cache cache = common_ngram_cache_load(argv[2]);
        dump(cache);
    } else if (what == "lookup" && argc == 4) {
        llama_tokens text;
        for (llama_token token; std::cin >> token;) {
            text.push_back(token);
        }
        common_ngram_cache context;
        common_ngram_cache_update(context, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, text, (int) text.size(), false);
        common_ngram_cache dynamic = common_ngram_cache_load(argv[2]);
        common_ngram_cache_merge(dynamic, context);
        common_ngram_cache_save(dynamic, argv[3]);
    } else {
        fprintf(stderr, "usage: see the head of the source\n");
        return 2;
    }
    return 0;
}
