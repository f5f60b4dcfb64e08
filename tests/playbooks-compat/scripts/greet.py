"""Called by its function, with what of the input it names."""


def main(name, times=1):
    return {"greetings": [f"Hello, {name}! #{number:02d}" for number in range(1, times + 1)]}
