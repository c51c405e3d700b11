"""Short stories: a hero, a place, a helper and a thing that brings the plot with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from base import words
from base.scene import Dice, Expect, Scene, Turn, ask, wordings


@dataclass(frozen=True, slots=True)
class Hero:
    kind: str
    name: str
    trait: str
    home: str

    @property
    def article(self) -> str:
        return "an" if self.kind[0] in "aeiou" else "a"


HEROES = (
    Hero("fox", "Finn", "curious", "at the edge of a quiet wood"),
    Hero("owl", "Olga", "wise", "in the tower of an old church"),
    Hero("hedgehog", "Hugo", "careful", "under a hedge behind the school"),
    Hero("robot", "Rho", "patient", "in the corner of a small workshop"),
    Hero("cat", "Cleo", "proud", "on the roof of the bakery"),
    Hero("dog", "Dot", "cheerful", "beside the village pond"),
    Hero("mouse", "Mina", "brave", "behind the stove of a mill"),
    Hero("bear", "Bruno", "sleepy", "in a cave above the valley"),
    Hero("rabbit", "Ruby", "quick", "in a field of clover"),
    Hero("crow", "Cora", "clever", "in a tall poplar by the road"),
    Hero("turtle", "Theo", "slow", "at the mouth of a river"),
    Hero("otter", "Otis", "playful", "on the bank of a clear stream"),
    Hero("squirrel", "Sky", "busy", "in the oldest oak of the park"),
    Hero("whale", "Wanda", "gentle", "in the bay below the cliffs"),
    Hero("dragon", "Drago", "shy", "on a hill that was always in the clouds"),
    Hero("baker", "Bela", "kind", "in a narrow street near the market"),
    Hero("sailor", "Sam", "calm", "in a blue house by the harbour"),
    Hero("gardener", "Greta", "quiet", "behind the walls of a large garden"),
    Hero("programmer", "Ada", "tired", "on the top floor of a tall house"),
    Hero("teacher", "Tom", "friendly", "next to the village school"),
)

# {hero} and {helper} are names, {kind} is what the helper is.
PLOTS = {
    "lantern": (
        "One evening {hero} found an old lantern beside the path. Its light was out, and the "
        "night came fast. {helper} the {kind} knew where the dry matches were kept, and soon the "
        "lantern shone again. From then on it hung beside the path, so that nobody had to walk "
        "home in the dark.",
        "The Lantern on the Path",
    ),
    "key": (
        "One morning {hero} found a small key in the grass. It fitted no door in the whole "
        "village. In the end {helper} the {kind} remembered a box that nobody had opened for "
        "years. The key turned, and inside lay a letter with only three words: share the apples.",
        "The Key in the Grass",
    ),
    "map": (
        "One day {hero} found half of a map. The other half belonged to {helper} the {kind}, who "
        "had kept it for years without knowing what it was. They laid both halves side by side "
        "and followed the red line over two hills. There was no gold at the end of it, only the "
        "best view they had ever seen.",
        "Two Halves of a Map",
    ),
    "boat": (
        "In spring {hero} built a little boat, but it leaked on the first day. {helper} the "
        "{kind} looked at it for a long time and then brought a bucket of tar. They worked until "
        "the sun went down. The next morning the boat carried both of them across the water, and "
        "not a drop came in.",
        "The Boat That Leaked",
    ),
    "bell": (
        "The bell of the village had been silent for a year, and {hero} wanted to know why. "
        "{helper} the {kind} climbed up and found a bird's nest inside it. So they waited until "
        "the young birds could fly. On that day the bell rang again, and everybody agreed that it"
        " had been worth the wait.",
        "The Silent Bell",
    ),
    "kite": (
        "One windy day {hero} made a kite out of an old newspaper. It flew higher than the "
        "houses, and then the string broke. {helper} the {kind} saw where it came down and "
        "brought it back before dark. They tied it to a stronger string, and the next day they "
        "took turns.",
        "The Newspaper Kite",
    ),
    "book": (
        "One rainy day {hero} found a book whose last page was missing. {helper} the {kind} had "
        "read it long ago but had forgotten how it ended. So they sat down together and wrote an "
        "ending of their own. When the missing page turned up at last, they liked theirs better.",
        "The Missing Page",
    ),
    "clock": (
        "The clock in the square was always ten minutes late, and {hero} decided to mend it. "
        "{helper} the {kind} held the ladder and handed up the tools. When the clock was right "
        "again, everybody came ten minutes late for everything. So they set it back, and peace "
        "returned.",
        "Ten Minutes Late",
    ),
    "seed": (
        "One autumn {hero} planted a single seed and waited. Nothing happened for a long time. "
        "{helper} the {kind} came by every week with a little water and a joke. In spring a green"
        " leaf came up at last, and by summer there was shade for two.",
        "A Little Water and a Joke",
    ),
    "letter": (
        "One day {hero} received a letter that was meant for somebody else. The name on it was "
        "wet and hard to read. {helper} the {kind} knew every house for miles, and together they "
        "went from door to door. At the last door an old woman opened the letter and smiled, "
        "because it was from her brother.",
        "The Wet Letter",
    ),
    "bridge": (
        "After the storm the bridge was gone, and {hero} could not cross the river. {helper} the "
        "{kind} stood on the other side with the same problem. Each of them laid one stone a day "
        "from their own bank. They met in the middle before the first snow, and the new bridge "
        "was stronger than the old one.",
        "One Stone a Day",
    ),
    "lighthouse": (
        "One night the lighthouse went dark while a ship was still at sea. {hero} ran up all the "
        "stairs and found that the lamp had burnt out. {helper} the {kind} held up a mirror, and "
        "together they threw the light of the moon over the water. The ship came home safely, and"
        " nobody ever learnt how.",
        "The Borrowed Moon",
    ),
    "star": (
        "One night a star fell into the garden, and {hero} was the only one awake. It was small "
        "and warm and missed the sky. {helper} the {kind} had the idea to lay it on the highest "
        "branch of the tallest tree. The next night it had enough courage to jump, and there was "
        "one star more above the roofs.",
        "The Star in the Garden",
    ),
    "song": (
        "{hero} could remember the first half of an old song, but not the rest. {helper} the "
        "{kind} knew only the second half. When they sang together for the first time, the whole "
        "street opened its windows. Since then they have sung it every Sunday, and neither of "
        "them would sing it alone.",
        "Half a Song",
    ),
}
OPENINGS = (
    "{name} was a {trait} {kind} who lived {home}.",
    "There once was a {trait} {kind} called {name} who lived {home}.",
)
REQUESTS = wordings(
    "(Tell|Write) (me |)a(| short) story about {a} {hero} and a {thing}.",
    "Write a(| short) story about {a} {hero} (who finds|with) a {thing}.",
    "(Tell me|Write|I would like) a(| short) story about {a} {hero}(, please|).",
    "(Tell me|Write) a(| short) story about a {thing}(, please|).",
    "(Tell me|Write) a(| short) story(, please|).",
)
NAMED = wordings(
    "(Tell me|Write) a(| short) story about {a} {hero} (called|named) {name} and a {thing}.",
    "(Tell me|Write) a(| short) story about {name} the {hero} and a {thing}.",
)


def scene(dice: Dice) -> Scene:
    """A story and, now and then, a question about it."""
    hero, helper = dice.sample(HEROES, 2)
    thing = dice.choice(list(PLOTS))
    plot, title = PLOTS[thing]
    requests = REQUESTS
    if dice.random() < 0.35:
        hero, requests = replace(hero, name=words.name(dice)), NAMED
    request = dice.pick(requests).format(a=hero.article, hero=hero.kind, thing=thing, name=hero.name)
    opening = dice.choice(OPENINGS).format(name=hero.name, trait=hero.trait, kind=hero.kind, home=hero.home)
    story = f"{opening} {plot.format(hero=hero.name, helper=helper.name, kind=helper.kind)}"
    told = tuple(word for word in (hero.kind, thing) if word in request)
    if requests is NAMED:
        told = (hero.name,)
    turns = [Turn(ask(dice, request), story, Expect(phrases=(*told[:1], story[-25:])))]
    questions = (
        ("Give it a title.", f'How about "{title}"?'),
        (f"Who helped {hero.name}?", f"{helper.name} the {helper.kind} helped {hero.name}."),
        (
            f"Where did {hero.name} live?",
            f"{hero.name}, the {hero.trait} {hero.kind}, lived {hero.home}.",
        ),
    )
    if dice.random() < 0.3:
        question, answer = dice.choice(questions)
        turns.append(Turn(question, answer, Expect(text=answer)))
    return turns
