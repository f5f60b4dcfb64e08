def bytes(length):
    return b"\7" * length


def number():
    return 7
