def now():
    return 1_700_000_000_500_000_000


def monotonic():
    return 2_000_000_000
