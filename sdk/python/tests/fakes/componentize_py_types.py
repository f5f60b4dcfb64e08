"""Stands in for what the component's own build provides."""


class Err(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value
