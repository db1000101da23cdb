/** The share of each kind in all inputs: most where the most ways in are. */
const shares = { routes: 0.51, frames: 0.3, webhooks: 0.14, imports: 0.03, streams: 0.02 };

export type FuzzKind = keyof typeof shares;

export const inputsOf = (kind: FuzzKind, inputs: number): number => Math.round(inputs * shares[kind]);
