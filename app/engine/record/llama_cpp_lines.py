"""The statistics in the form of llama.cpp's log."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_float

from app.engine.record.stats import DraftStatistics, Statistics


def llama_cpp_lines(
    statistics: Statistics, strategies: Sequence[str], n_max: int | None = None, generations: int = 1
) -> list[str]:
    """The statistics of a generation, or of several pooled, as the built-in llama.cpp prints them.

    The first two lines are `print_timings` of its tools/server/server-context.cpp, absent while nothing was
    drafted; then comes one line per strategy, `common_speculative_print_stats` of its common/speculative.cpp.
    The prefixes of its log (slot and task numbers, function names) are left out.

    `strategies` are names in order of precedence (see `strategy_names`). `n_max` is the longest possible
    draft of this run, by default the longest that occurred. `acc per pos` lists this many positions,
    including those where nothing was accepted.
    """
    lines = []
    if statistics.drafted > 0:
        # llama.cpp divides in single precision here.
        accepted, drafted = (c_float(n).value for n in (statistics.accepted, statistics.drafted))
        share = c_float(accepted / drafted).value
        lines.append(
            f"draft acceptance = {share:0.5f} ({statistics.accepted:5d} accepted / "
            f"{statistics.drafted:5d} generated), mean len = {statistics.tau:5.2f}"
        )
        length = statistics.longest_draft if n_max is None else n_max
        counts = (statistics.accepted_at + (0,) * length)[:length]
        rates = ", ".join(f"{count / statistics.drafted_rounds:.3f}" for count in counts)
        lines.append(f"     acc per pos = ({rates})")
    return lines + [_strategy_line(statistics, strategies, name, generations) for name in strategies]


def _strategy_line(statistics: Statistics, strategies: Sequence[str], name: str, generations: int) -> str:
    """llama.cpp's `statistics <type>: …` line of one strategy.

    Its counters in terms of rounds:

    - #calls b, `n_call_begin`: once a generation for every strategy.
    - #calls g, `n_call_draft`: rounds in which it was asked for a draft. No strategy is asked if only one
      more token is wanted, or if the draft length is 0. If a trace does not say: all rounds with a draft or a
      reason for none, less those served by a strategy of higher precedence.
    - #calls a, `n_call_accept`, and #gen drafts, `n_gen_drafts`: rounds with a draft of this
      strategy. The server calls accept in no other round. (llama-speculative-simple calls it in every round:
      if a strategy often finds nothing, its #calls a is higher and its means are lower.)
    - #acc drafts, `n_acc_drafts`: of these, rounds with at least one accepted token.
    - #gen tokens, #acc tokens: drafted and accepted tokens of this strategy. llama.cpp also counts tokens
      that agree after an end of generation as accepted; here they are ignored, never judged.
    - #acc rate/pos ends at the last position where a draft was ever accepted.
    - dur b is the time the strategy took to begin, dur a to learn what was accepted; 0 if traces before
      format 1.6 do not say. (The prompt is decoded on the draft outside of b, as in llama.cpp.) dur g
      is the drafting time of this strategy's rounds. A round has one time for all strategies that it asked:
      it counts for the one that drafted, or for the last if none did.
    """
    drafts = statistics.strategies.get(name, DraftStatistics())
    earlier = strategies[: strategies.index(name)]
    served = sum(
        statistics.strategies[strategy].drafted_rounds
        for strategy in earlier
        if strategy in statistics.strategies
    )
    calls = statistics.calls.get(name, 0) if statistics.calls else statistics.attempts - served
    seconds = drafts.draft_seconds
    if name == strategies[-1]:
        seconds += statistics.fruitless_seconds
    begin = statistics.begin_seconds.get(name, 0.0)
    means = ""
    if drafts.drafted_rounds > 0:
        accepted = drafts.accepted_at[: len(drafts.accepted_per_round) - 1]
        rates = ", ".join(f"{count / drafts.drafted_rounds:.3f}" for count in accepted)
        means = f", #mean acc len = {drafts.tau:.2f}, #acc rate/pos = ({rates})"
    return (
        f"statistics {name:>16}: "
        f"#calls(b,g,a) = {generations:4d} {calls:6d} {drafts.drafted_rounds:6d}, "
        f"#gen drafts = {drafts.drafted_rounds:6d}, #acc drafts = {drafts.accepted_drafts:5d}, "
        f"#gen tokens = {drafts.drafted:6d}, #acc tokens = {drafts.accepted:5d}{means}, "
        f"dur(b,g,a) = {begin * 1000:.3f}, {seconds * 1000:.3f}, {drafts.accept_seconds * 1000:.3f} ms"
    )
