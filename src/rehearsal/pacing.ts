/** Cuts text into words, each with the blanks after it. Joined again they are the text; no character is split. */
export const wordsOf = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? [];

/** Resolves after `milliseconds`; rejects with the signal's reason as soon as it aborts. */
export const pause = (milliseconds: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
