"""Help (F1): every word, key and folder of the window, and what it is made of.

`sections.py` gathers what is said, as text: the words from `instruments/definitions.py` and the columns of
reports, which the tooltips show too; the keys from the window's actions and the tables of keys that places
act by. `page.py` writes it as one page, `panel.py` is the panel over the place that is shown.
"""
