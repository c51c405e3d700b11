// Prints what llama.cpp's own ngram-simple, ngram-map-k and ngram-map-k4v draft, as JSON Lines: one scenario a line.
// See README.md beside this file for the format and for how it is compiled.
//
// llama.cpp is called as its server and its llama-speculative-simple call it, through common_speculative_begin,
// _draft and _accept. Its source file is included, not only its header, to read which implementation drafted.

#include "speculative.cpp"

#include <cstdio>
#include <random>

using Tokens = std::vector<llama_token>;

static std::mt19937 dice;

static int pick(int low, int high) {  // both included
    return low + (int) (dice() % (uint32_t) (high - low + 1));
}

static bool chance(int percent) {
    return pick(1, 100) <= percent;
}

// ---- texts

// Tokens of this many kinds; `colliding` ones share llama.cpp's 18-bit hashes with each other.
static llama_token token_of(int kinds, bool colliding) {
    return colliding ? pick(0, kinds - 1) % 2 + 262144 * pick(0, 2) : pick(0, kinds - 1);
}

static Tokens noise(int length, int kinds, bool colliding) {
    Tokens text;
    for (int i = 0; i < length; ++i) {
        text.push_back(token_of(kinds, colliding));
    }
    return text;
}

// Passages that come again, some of them with changes: what these drafters are for.
static Tokens structured(int length, int kinds, bool colliding) {
    std::vector<Tokens> passages;
    for (int i = pick(1, 4); i > 0; --i) {
        passages.push_back(noise(pick(1, std::max(2, length / 4)), kinds, colliding));
    }
    Tokens text;
    while ((int) text.size() < length) {
        for (const auto token : passages[pick(0, (int) passages.size() - 1)]) {
            text.push_back(chance(2) ? token_of(kinds, colliding) : token);
        }
        if (chance(30)) {
            text.push_back(token_of(kinds, colliding));
        }
    }
    text.resize(length);
    return text;
}

static Tokens text_of(int length, int kinds, bool colliding) {
    return chance(25) ? noise(length, kinds, colliding) : structured(length, kinds, colliding);
}

// The next answer's text: how a chat goes on, is edited, regenerated, or left for another.
static Tokens changed(const Tokens & text, int length, int kinds, bool colliding) {
    Tokens next;
    const int size = (int) text.size();
    switch (pick(0, 5)) {
        case 0:  // another chat
            return text_of(length, kinds, colliding);
        case 1:  // the same again
            return text;
        case 2: {  // the end taken back
            next.assign(text.begin(), text.begin() + pick(1, size));
            break;
        }
        case 3: {  // a part in the middle removed, as reasoning is
            const int from = pick(0, size - 1);
            const int to = pick(from, size - 1);
            next.assign(text.begin(), text.begin() + from);
            next.insert(next.end(), text.begin() + to, text.end());
            break;
        }
        case 4: {  // a token changed, the length kept
            next = text;
            next[pick(0, size - 1)] = token_of(kinds, colliding);
            break;
        }
        default:  // it goes on
            next = text;
    }
    if (chance(70)) {
        const int from = pick(0, (int) next.size() - 1);
        const Tokens again(next.begin() + from, next.end());
        next.insert(next.end(), again.begin(), again.end());
    }
    const Tokens more = text_of(pick(1, length / 2 + 1), kinds, colliding);
    next.insert(next.end(), more.begin(), more.end());
    if ((int) next.size() > 3 * length) {
        next.resize(3 * length);
    }
    return next;
}

// ---- one scenario

static void print_tokens(const Tokens & tokens) {
    printf("[");
    for (size_t i = 0; i < tokens.size(); ++i) {
        printf(i == 0 ? "%d" : ",%d", tokens[i]);
    }
    printf("]");
}

struct Drafter {
    common_speculative_type type;
    common_params_speculative_ngram_map size;
};

struct Style {
    int length;      // of a text, roughly
    int kinds;       // of tokens
    bool colliding;  // many n-grams share a hash
    bool wild;       // accept is called with any number
};

static void scenario(const std::vector<Drafter> & drafters, const Style & style, const Tokens & fixed = {}) {
    const auto [length, kinds, colliding, wild] = style;
    common_params_speculative params;
    params.types.clear();
    printf("{\"drafters\":[");
    for (size_t i = 0; i < drafters.size(); ++i) {
        const auto & [type, size] = drafters[i];
        params.types.push_back(type);
        (type == COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE  ? params.ngram_simple
         : type == COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K ? params.ngram_map_k
                                                       : params.ngram_map_k4v) = size;
        printf("%s[\"%s\",%d,%d,%d]", i == 0 ? "" : ",", common_speculative_type_to_str(type).c_str(),
               size.size_n, size.size_m, size.min_hits);
    }
    printf("],\"answers\":[");

    common_speculative_ptr spec(common_speculative_init(params, 1));
    Tokens text = fixed.empty() ? text_of(length, kinds, colliding) : fixed;
    const int answers = fixed.empty() ? pick(1, 6) : 1;
    for (int answer = 0; answer < answers; ++answer) {
        if (answer > 0) {
            text = changed(text, length, kinds, colliding);
        }
        const int size = (int) text.size();
        // The last token is kept apart, as id_last.
        int at = !fixed.empty() ? size - 31 : pick(1, chance(30) ? size : std::max(1, size / 2));
        printf("%s{\"text\":", answer == 0 ? "" : ",");
        print_tokens(text);
        printf(",\"begin\":%d,\"rounds\":[", at);
        common_speculative_begin(spec.get(), 0, Tokens(text.begin(), text.begin() + at - 1));

        bool first = true;
        // Some answers are broken off, some before the first draft.
        const int stop = chance(10) ? at - 1 : chance(20) ? pick(at, size) : size;
        while (at <= stop) {
            if (chance(5)) {  // a round in which no draft is wanted
                at += 1;
                continue;
            }
            const Tokens prompt(text.begin(), text.begin() + at - 1);
            Tokens draft;
            const int k = chance(70) ? 1024 : pick(1, 6);
            common_speculative_get_draft_params(spec.get(), 0) = {
                /* .drafting = */ true,
                /* .n_max    = */ k,
                /* .pos0     = */ at - 1,
                /* .id_last  = */ text[at - 1],
                /* .prompt   = */ &prompt,
                /* .result   = */ &draft,
            };
            common_speculative_draft(spec.get());
            int accepted = 0;
            int who = -1;
            if (draft.empty()) {
                at += 1;
            } else {
                const auto type = spec->impl_last[0]->type;
                for (size_t i = 0; i < drafters.size(); ++i) {
                    who = drafters[i].type == type ? (int) i : who;
                }
                if (wild) {  // statistics do not ask whether what is said of a draft is true
                    accepted = pick(0, (int) draft.size());
                } else {
                    while (accepted < (int) draft.size() && at + accepted < size
                           && draft[accepted] == text[at + accepted]) {
                        ++accepted;
                    }
                }
                common_speculative_accept(spec.get(), 0, (uint16_t) accepted);
            }
            printf("%s[%d,%d,%d,", first ? "" : ",", (int) prompt.size() + 1, k, who);
            print_tokens(draft);
            printf(",%d]", accepted);
            first = false;
            at += draft.empty() ? 0 : wild ? pick(1, 4) : accepted + 1;
        }
        printf("]}");
    }
    printf("]}\n");
}

static common_params_speculative_ngram_map sizes() {
    common_params_speculative_ngram_map size;
    size.size_n = (uint16_t) (chance(80) ? pick(1, 4) : pick(1, 12));
    size.size_m = (uint16_t) (chance(80) ? pick(1, 8) : pick(1, 32));
    size.min_hits = (uint16_t) (chance(60) ? 1 : pick(1, 4));
    return size;
}

// A key with two continuations: the counter of the frequent one has stopped at its limit of 16,380, and that of the
// other passes half of it while the answer goes on.
static Tokens counted_out() {
    Tokens text;
    for (int i = 0; i < 28195; ++i) {
        text.insert(text.end(), {1, i < 20000 ? 2 : 3});
    }
    return text;
}

static const std::vector<common_speculative_type> types = {
    COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE,
    COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K,
    COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K4V,
};

// Three of five scenarios have one drafter, the others two or three, in llama.cpp's order of precedence.
static void any_scenario(int number) {
    std::vector<Drafter> drafters;
    if (number % 5 < 3) {
        drafters.push_back({types[number % 5], sizes()});
    } else {
        const int left_out = pick(0, 3);
        for (int t = 0; t < 3; ++t) {
            if (t != left_out) {
                drafters.push_back({types[t], sizes()});
            }
        }
    }
    const std::vector<int> alphabets = {1, 2, 2, 3, 5, 10, 100};
    const int kinds = alphabets[pick(0, (int) alphabets.size() - 1)];
    scenario(drafters, {pick(20, kinds > 10 ? 80 : 150), kinds, chance(40), chance(30)});
}

int main(int argc, char ** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s SCENARIOS SEED...\n", argv[0]);
        return 2;
    }
    common_log_set_verbosity_thold(-1);
    for (int seed = 2; seed < argc; ++seed) {
        dice.seed((uint32_t) atoi(argv[seed]));
        for (int i = 0; i < atoi(argv[1]); ++i) {
            any_scenario(i);
        }
    }
    for (const auto type : types) {
        scenario({{type, {}}}, {800, 50, false, false});  // llama.cpp's own sizes
        scenario({{type, {1, 1, 1}}}, {}, counted_out());
    }
    return 0;
}
