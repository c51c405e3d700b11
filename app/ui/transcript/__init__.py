"""The transcript: coloured tokens, rendered text, a legend, a find bar.

An answer is a list of sections, answer and reasoning in turn (`layout/sections.py`). Folded blocks stay in
the list with height 0, so that positions, search and copying do not depend on what is folded. An answer that
fills a gap is between its two texts, in their lines (`layout/sectioned_item.py`). `text/` is the shown
content, as data without Qt; `layout/` places and paints it. Only visible text is laid out. If the cursor
moves back, the text is cut at a mark and built again from there (`layout/answer_item.py`). The layout of the
cut text is kept, in case the cursor moves forward again (`layout/sections.py`). Lines around rounds and
tokens (`outlines.py`) are painted without the rest of the text. `furniture.py` places the widgets in or over
it, `hover_card.py` the card of a token.
"""

from app.ui.transcript.controls import Legend
from app.ui.transcript.find_bar import FindBar
from app.ui.transcript.text.spans import AnswerTurn, SystemTurn, Turn, UserTurn
from app.ui.transcript.view import AnswerView, TranscriptView

__all__ = [
    "AnswerTurn", "AnswerView", "FindBar", "Legend", "SystemTurn", "TranscriptView", "Turn", "UserTurn",
]  # fmt: skip
