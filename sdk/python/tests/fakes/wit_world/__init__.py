"""The host as the tests see it: each capability keeps what it was given in lists and dictionaries."""


class WitWorld:
    pass
