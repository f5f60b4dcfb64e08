// Signals that abort by themselves when their time is over.
//
// The engine's own wait on a timer that nobody counts (settling.js), so a promise that only such a signal settles would be
// told of as one that nothing does. And a request is one call of the host, during which no timer fires: it has to
// know in advance how much time it has, which the engine's signals do not tell.

/** When signals abort, in milliseconds as `Date.now()` counts them. */
const deadlines = new WeakMap();
const LONGEST = 2 ** 31 - 1;

/** How long a signal leaves from now on; undefined for as long as it takes. */
export function timeLeft(signal) {
  const deadline = deadlines.get(signal);
  return deadline === undefined ? undefined : Math.min(deadline - Date.now(), LONGEST);
}

/** What a signal aborts with when its time is over. */
export const timedOut = () => new DOMException('the time of the signal is over', 'TimeoutError');

/** Puts signals that tell their time in the place of the engine's. Its `abort` takes no call without a reason, what its
 * `any` gives is aborted from the beginning with a reason that is no value, and its `throwIfAborted` ends the sandbox. */
export function install() {
  AbortSignal.prototype.throwIfAborted = function () {
    if (this.aborted) throw this.reason;
  };
  AbortSignal.abort = (reason) => {
    const controller = new AbortController();
    controller.abort(reason ?? new DOMException('the signal was aborted', 'AbortError'));
    return controller.signal;
  };
  AbortSignal.timeout = (delay) => {
    const wait = Number(delay);
    if (!(wait >= 0)) throw new TypeError('`AbortSignal.timeout` takes milliseconds, 0 or more');
    const controller = new AbortController();
    deadlines.set(controller.signal, Date.now() + wait);
    setTimeout(() => controller.abort(timedOut()), Math.min(wait, LONGEST));
    return controller.signal;
  };
  AbortSignal.any = (given) => {
    const signals = [...given];
    const controller = new AbortController();
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted) controller.abort(aborted.reason);
    else signals.forEach((signal) => signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true }));
    const known = signals.map((signal) => deadlines.get(signal)).filter((deadline) => deadline !== undefined);
    if (known.length > 0) deadlines.set(controller.signal, Math.min(...known));
    return controller.signal;
  };
}
