export const now = () => 1_700_000_000_500_000_000n;
export const monotonic = () => 2_000_000n;
