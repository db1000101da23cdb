/** Resolves when `promise` has settled, or after `timeoutMs` at the latest. Leaves no timer behind. */
export const settledWithin = async (timeoutMs: number, promise: Promise<unknown>): Promise<void> => {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  try {
    await Promise.race([promise.catch(() => undefined), late.promise]);
  } finally {
    clearTimeout(timer);
  }
};
