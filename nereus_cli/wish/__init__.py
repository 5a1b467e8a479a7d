"""How people say time: text in, an instant out, or a refusal that shows what else might have been meant.

Nothing here reads a clock or the host's own zone, and nothing is guessed: a text has one meaning or is refused.
"""
