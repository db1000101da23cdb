/** Of all inputs, how many are of which kind: most where most ways in are. */
const shares = { routes: 0.6, frames: 0.2, webhooks: 0.15, streams: 0.05 };

export type FuzzKind = keyof typeof shares;

export const inputsOf = (kind: FuzzKind, inputs: number): number => Math.round(inputs * shares[kind]);
