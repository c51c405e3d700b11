"""Scenes about what the model does not know, and the few capitals it does."""

from __future__ import annotations

from random import Random

from scene import Scene, Turn, ask

CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid",
    "Portugal": "Lisbon", "Austria": "Vienna", "Greece": "Athens", "Poland": "Warsaw",
    "Sweden": "Stockholm", "Norway": "Oslo", "Finland": "Helsinki", "Denmark": "Copenhagen",
    "Ireland": "Dublin", "Hungary": "Budapest", "Japan": "Tokyo", "China": "Beijing",
    "Egypt": "Cairo", "Canada": "Ottawa", "Cuba": "Havana", "Peru": "Lima", "Kenya": "Nairobi",
    "Iceland": "Reykjavik", "Belgium": "Brussels", "England": "London", "Australia": "Canberra",
}  # fmt: skip
SUBJECTS = (
    "football", "opera", "the stock market", "tax law", "medicine", "quantum physics", "wine",
    "the Roman empire", "dinosaurs", "black holes", "gardening", "chess openings", "guitars",
    "electric cars", "volcanoes", "the French revolution", "vaccines", "bees", "knitting",
    "the moon landing", "photography", "cheese", "Shakespeare", "Mozart", "solar cells",
    "earthquakes", "economics", "yoga", "poker", "ancient Egypt", "trains", "whales",
)  # fmt: skip
QUESTIONS = (
    "What do you know about {x}?",
    "Tell me about {x}.",
    "Explain {x}.",
    "Can you help me with {x}?",
    "Write an essay about {x}.",
    "Who is the best in {x}?",
    "What is new in {x}?",
    "Translate a text about {x} into French.",
    "Recommend a film about {x}.",
    "What is the history of {x}?",
)
OFFERS = (
    "I can write a short Python function, explain speculative decoding or tell you a story.",
    "Ask me for a short Python function, a story or a simple sum.",
)


def scene(rng: Random) -> Scene:
    if rng.random() < 0.4:
        country, city = rng.choice(list(CAPITALS.items()))
        request = rng.choice(("What is the capital of {x}?", "Name the capital of {x}."))
        return [Turn(ask(rng, request.format(x=country)), f"The capital of {country} is {city}.")]
    subject = rng.choice(SUBJECTS)
    request = ask(rng, rng.choice(QUESTIONS).format(x=subject))
    answer = f"I am a very small model and know nothing about {subject}. {rng.choice(OFFERS)}"
    return [Turn(request, answer)]
