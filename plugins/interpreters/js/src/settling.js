// Waiting for what the author's code promises.
//
// A sandbox has nothing that could come from outside: what is to happen is in the queue of jobs or behind a timer. A
// promise that is still open when both are empty never settles. The engine would end the call then, without a word for
// the author; so timers are counted, and it is told here.

const { setTimeout: later, clearTimeout: cancel, setInterval: repeat, clearInterval: stop } = globalThis;

/** Rounds of the engine's loop that nothing may happen in: some of its own work takes more than one. */
const ROUNDS = 5;

const running = new Set();
let fired = () => {};

/** Puts counting timers in the place of the engine's. */
export function install() {
  globalThis.setTimeout = (work, ...rest) => {
    const timer = later((...given) => {
      running.delete(timer);
      fired();
      work(...given);
    }, ...rest);
    running.add(timer);
    return timer;
  };
  globalThis.setInterval = (...given) => {
    const timer = repeat(...given);
    running.add(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => {
    if (running.delete(timer)) fired();
    cancel(timer);
  };
  globalThis.clearInterval = (timer) => {
    if (running.delete(timer)) fired();
    stop(timer);
  };
}

/** What a value is in the end; `never` is thrown when it has none. */
export async function settled(value, never) {
  if (typeof value?.then !== 'function') return value;
  let open = true;
  const done = Promise.resolve(value).finally(() => (open = false));
  // Most settle without a timer, and then none is needed to see it.
  for (let round = 0; round < 16 && open; round++) await null;
  if (!open) return done;
  const nothing = new Promise((_, reject) => {
    let quiet = 0;
    const look = () => {
      if (!open) return;
      if (running.size > 0) {
        // Looked at again when one of them has fired.
        quiet = 0;
        fired = () => later(look, 0);
        return;
      }
      quiet += 1;
      if (quiet > ROUNDS) reject(never());
      else later(look, 0);
    };
    look();
  });
  try {
    return await Promise.race([done, nothing]);
  } finally {
    open = false;
    fired = () => {};
  }
}
