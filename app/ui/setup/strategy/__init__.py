"""The strategy panel: the picker, the cards of a mix, their forms, the length rule, text and commands."""
