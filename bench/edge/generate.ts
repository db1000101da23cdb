/** The words of a bench's model: these deltas, at so many a second, or with 0 as fast as they come. */
export type Generation = { deltas: string[]; perSecond: number };

/** Plays a model: hands each delta to `say` and answers when, in milliseconds since the epoch. */
export const generate = async (
  { deltas, perSecond }: Generation,
  say: (text: string, index: number) => void,
): Promise<number[]> => {
  const times: number[] = [];
  const startedAt = Date.now();
  for (const [index, text] of deltas.entries()) {
    // A model's parts come one by one: what reads them gets a turn between any two.
    if (perSecond === 0) await Promise.resolve();
    else await until(startedAt + (index * 1000) / perSecond);
    times.push(Date.now());
    say(text, index);
  }
  return times;
};

const until = (at: number): Promise<void> => new Promise((resume) => setTimeout(resume, Math.max(0, at - Date.now())));
